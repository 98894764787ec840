package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;

/** By UCX, which is installed. */
class UcxGetPathTest extends UcxPathContract {
  @Override
  UcxStarter ucx() {
    return onStart -> TestUcx.start();
  }
}
