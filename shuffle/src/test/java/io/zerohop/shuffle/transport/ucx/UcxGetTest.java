package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;

/** By UCX, which is installed. */
class UcxGetTest extends UcxReads {
  @Override
  UcxEngine engine(final Clock clock) {
    return TestUcx.start(clock);
  }
}
