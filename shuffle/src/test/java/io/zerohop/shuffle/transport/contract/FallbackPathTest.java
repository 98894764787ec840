package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockPath;
import java.util.EnumSet;

/** Blocks are copied by what is left where no other way is allowed. */
class FallbackPathTest extends RemotePathContract {
  @Override
  protected BlockPath path() {
    return BlockPath.STAGED;
  }

  @Override
  protected ShuffleNode.Setup configure(final ShuffleNode.Setup config, final String executor) {
    return config.set("paths", EnumSet.of(BlockPath.STAGED));
  }
}
