package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.block.BlockPath;

/** Blocks are read where they lie, by a neighbour that maps them. */
class PeerPathTest extends RemotePathContract {
  @Override
  protected BlockPath path() {
    return BlockPath.PEER;
  }
}
