package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.transport.ucx.engine.UcxMode;

/** Blocks come by messages. */
class UcxMessageTest extends UcxReads {
  UcxMessageTest() {
    super(UcxMode.MESSAGE);
  }
}
