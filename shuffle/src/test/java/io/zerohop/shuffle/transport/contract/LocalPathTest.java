package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.block.Path;

/** Blocks are read where they lie, by their owner. */
class LocalPathTest extends PathContract {
  @Override
  protected Path path() {
    return Path.LOCAL;
  }

  @Override
  protected boolean isOwn() {
    return true;
  }
}
