package io.zerohop.shuffle.transport.ucx;

/** Blocks come by one-sided gets. */
class UcxGetTest extends UcxReads {
  UcxGetTest() {
    super(UcxMode.GET);
  }
}
