package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;

/** By copies in this process, as where no libucx is installed. */
class FakeUcxGetTest extends UcxReads {
  private final FakeUcx ucx = new FakeUcx();

  @Override
  void end() {
    ucx.close();
  }

  @Override
  UcxEngine engine(final Clock clock) {
    return ucx.engine();
  }
}
