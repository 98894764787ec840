package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;

/** By copies in this process, as where no libucx is installed. */
class FakeUcxPathTest extends UcxPathContract {
  private final FakeUcx ucx = new FakeUcx();

  @Override
  protected void endFallback() { // Nothing is under way any more.
    ucx.close();
  }

  @Override
  UcxStarter ucx() {
    return onStart -> ucx.engine();
  }
}
