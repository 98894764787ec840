package io.zerohop.shuffle.transport.ucx;

/** Blocks come by messages. */
class UcxMessageTest extends UcxReads {
  UcxMessageTest() {
    super(UcxMode.MESSAGE);
  }
}
