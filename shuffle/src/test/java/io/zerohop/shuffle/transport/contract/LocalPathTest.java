package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.block.BlockPath;

/** Blocks are read where they lie, by their owner. */
class LocalPathTest extends PathContract {
  @Override
  protected BlockPath path() {
    return BlockPath.LOCAL;
  }

  @Override
  protected boolean isOwn() {
    return true;
  }
}
