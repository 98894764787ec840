package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.contract.RemotePathContract;
import io.zerohop.shuffle.transport.ucx.engine.UcxStarter;
import java.time.Duration;

/** Blocks come from what is taken to be another node, by gets. */
abstract class UcxPathContract extends RemotePathContract {
  private final LocalChannels channels = new LocalChannels();

  /** UCX of a node. */
  abstract UcxStarter ucx();

  @Override
  protected Path path() {
    return Path.UCX;
  }

  @Override
  protected NodeConfig.Builder configure(final NodeConfig.Builder config, final String executor) {
    ucx().start(() -> {}).close(); // Skips where there is none.
    return config
        .nodeId("node-" + executor)
        .ucx(ucx())
        .emulatedGets(true)
        .requestLimit(Duration.ofSeconds(4))
        .connectLimit(Duration.ofSeconds(2))
        .controlChannels(channels::open);
  }
}
