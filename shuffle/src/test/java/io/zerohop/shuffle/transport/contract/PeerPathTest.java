package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.block.Path;

/** Blocks are read where they lie, by a neighbour that maps them. */
class PeerPathTest extends RemotePathContract {
  @Override
  protected Path path() {
    return Path.PEER;
  }
}
