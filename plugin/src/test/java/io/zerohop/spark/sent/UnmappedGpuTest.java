package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.block.BlockPath;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Executors of one node whose GPUs cannot map each other's memory. */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class UnmappedGpuTest {
  @TempDir private java.nio.file.Path folder;

  @Test
  void whatLiesInGpuMemoryIsSentByItsOwner() throws IOException {
    try (SentNodes nodes = new SentNodes(folder, Map.of())) {
      start(nodes, "owner");
      final SentNodes.Member reader = start(nodes, "reader");
      nodes.write();
      assertThat(reader.read().keySet()).containsExactly(BlockPath.SENT);
      assertThat(reader.stats().peers().readable()).as("it is a neighbour").isEqualTo(1);
      reader.awaitIdle();
    }
  }

  private static SentNodes.Member start(final SentNodes nodes, final String name)
      throws IOException {
    final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
    gpu.refuseMaps(true);
    return nodes.start(name, config -> config.set("node.id", "of both"), gpu);
  }
}
