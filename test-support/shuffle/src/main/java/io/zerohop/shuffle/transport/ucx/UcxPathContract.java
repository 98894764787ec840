package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.contract.RemotePathContract;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.shuffle.transport.ucx.engine.UcxMode;
import java.time.Duration;

/** Blocks come from what is taken to be another node, by UCX. */
abstract class UcxPathContract extends RemotePathContract {
  private final UcxMode mode;
  private final LocalChannels channels = new LocalChannels();

  UcxPathContract(final UcxMode mode) {
    this.mode = mode;
  }

  @Override
  protected Path path() {
    return Path.UCX;
  }

  @Override
  protected NodeConfig.Builder configure(final NodeConfig.Builder config, final String executor) {
    TestUcx.start().close(); // Skips where there is no libucx.
    return config
        .nodeId("node-" + executor)
        .ucx((oneSided, onStart) -> UcxLoader.start(null, null, oneSided, onStart, Clock.system()))
        .ucxMode(mode)
        .requestLimit(Duration.ofSeconds(4))
        .connectLimit(Duration.ofSeconds(2))
        .controlChannels(channels::open);
  }
}
