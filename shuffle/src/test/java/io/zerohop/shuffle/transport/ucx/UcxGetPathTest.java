package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.transport.ucx.engine.UcxMode;

/** Blocks come by one-sided gets. */
class UcxGetPathTest extends UcxPathContract {
  UcxGetPathTest() {
    super(UcxMode.GET);
  }
}
