package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.fetch.Fetch;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Two readers of one executor that want the same blocks at the same time. */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentSharedTest {
  @TempDir private java.nio.file.Path folder;
  private final AtomicLong messageBytes = new AtomicLong();
  private SentNodes nodes;
  private SentNodes.Member reader;
  private List<Block> blocks;

  @BeforeEach
  void start() throws IOException {
    nodes = new SentNodes(folder, Map.of("spark.shuffle.compress", "false"));
    nodes.start("owner");
    reader = nodes.start("reader");
    nodes.write();
    blocks = nodes.source().blocks();
  }

  @AfterEach
  void nothingIsHeld() throws IOException {
    nodes.close();
  }

  /** The first message passes when it is so. */
  private void holdUntil(final BooleanSupplier passes) {
    reader
        .proxy()
        .hear(
            new PortProxy.Ear() {
              @Override
              public void begins(final UploadId id) {
                if (id.kind() == UploadId.MESSAGE && messageBytes.getAndAdd(id.length()) == 0) {
                  TestNodes.eventually("the message may pass", passes);
                }
              }
            });
  }

  private boolean allAreShared() {
    return reader.stats().receiveBuffers().sharedBlocks() == blocks.size();
  }

  @Test
  void theBlocksAreSentOnce() throws Exception {
    holdUntil(this::allAreShared);
    final CompletableFuture<Map<BlockPath, Integer>> one =
        CompletableFuture.supplyAsync(reader::read);
    assertThat(reader.read()).containsExactly(Map.entry(BlockPath.SENT, blocks.size()));
    assertThat(one.get(20, TimeUnit.SECONDS))
        .containsExactly(Map.entry(BlockPath.SENT, blocks.size()));
    assertThat(messageBytes).hasValue(blocks.stream().mapToLong(Block::bytes).sum());
  }

  @Test
  void oneThatStopsTakesNothingFromTheOther() throws Exception {
    final Fetch stopping = reader.fetch(nodes.source());
    holdUntil(
        () -> {
          if (allAreShared()) {
            stopping.close();
            return true;
          }
          return false;
        });
    final CompletableFuture<Boolean> first = CompletableFuture.supplyAsync(stopping::next);
    TestNodes.eventually("it has requested them", () -> messageBytes.get() > 0);
    assertThat(reader.read()).containsExactly(Map.entry(BlockPath.SENT, blocks.size()));
    assertThat(first).failsWithin(20, TimeUnit.SECONDS);
  }
}
