package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.block.Path;
import java.util.EnumSet;

/** Blocks are copied by what is left where no other way is allowed. */
class FallbackPathTest extends RemotePathContract {
  @Override
  protected Path path() {
    return Path.STAGED;
  }

  @Override
  protected NodeConfig.Builder configure(final NodeConfig.Builder config, final String executor) {
    return config.paths(EnumSet.of(Path.STAGED));
  }
}
