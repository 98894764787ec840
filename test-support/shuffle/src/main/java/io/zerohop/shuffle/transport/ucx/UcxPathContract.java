package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.transport.contract.RemotePathContract;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;
import java.time.Duration;

/** Blocks come from what is taken to be another node, by gets. */
abstract class UcxPathContract extends RemotePathContract {
  private final LocalChannels channels = new LocalChannels();

  /** UCX of a node. */
  abstract UcxStarter ucx();

  @Override
  protected BlockPath path() {
    return BlockPath.UCX;
  }

  @Override
  protected ShuffleNode.Setup configure(final ShuffleNode.Setup config, final String executor) {
    ucx().start(() -> {}).close(); // Skips where there is none.
    return config
        .set("node.id", "node-" + executor)
        .ucx(ucx(), channels::open)
        .set("internal.ucx.emulatedGets", true)
        .set("request.timeout", Duration.ofSeconds(4))
        .set("connect.timeout", Duration.ofSeconds(2));
  }
}
