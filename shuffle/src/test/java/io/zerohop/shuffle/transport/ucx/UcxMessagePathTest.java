package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.transport.ucx.engine.UcxMode;

/** Blocks come by messages. */
class UcxMessagePathTest extends UcxPathContract {
  UcxMessagePathTest() {
    super(UcxMode.MESSAGE);
  }
}
