package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.NodeStats.ReceiveBuffers;
import io.zerohop.shuffle.block.BlockPath;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** How much memory both ends take while far more is asked for, as docs/sent.md says. */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentMemoryTest {
  /** Of the receive buffers: some windows. */
  private static final long LIMIT = 4L << 20;

  private static final int WINDOW_BLOCKS = 2;
  private static final long WINDOW = WINDOW_BLOCKS * (long) SentNodes.MOST;
  private static final int FETCHERS = 4;

  /** Pieces are rounded up by an eighth, and to 64 KiB. */
  private static final double ROUNDED = 1.25;

  @TempDir private java.nio.file.Path folder;
  private final PinnedMeter pinnedByOwner = new PinnedMeter();
  private final PinnedMeter pinnedByReader = new PinnedMeter();
  private SentNodes nodes;
  private SentNodes.Member owner;
  private SentNodes.Member reader;
  private SentNodes.Member other;
  private long sending;
  private long reserved;

  /** With GPUs, from which blocks have to be copied. */
  @BeforeEach
  void start() throws IOException {
    nodes = new SentNodes(folder, Map.of());
    owner = start("owner", pinnedByOwner);
    reader = start("reader", pinnedByReader);
    other = start("other", new PinnedMeter());
    nodes.write();
    pinnedByOwner.begin();
    pinnedByReader.begin();
  }

  private SentNodes.Member start(final String name, final PinnedMeter pinned) throws IOException {
    return nodes.start(
        name,
        config ->
            config.set("fetch.receiveBuffers", LIMIT).set("fetch.window.blocks", WINDOW_BLOCKS),
        pinned.of(new DeviceOnlyGpu()));
  }

  @AfterEach
  void nothingIsHeld() throws IOException {
    nodes.close();
  }

  @Test
  void whatIsAskedForAtOnceTakesNoMoreThanItMay() throws Exception {
    final ExecutorService threads = Executors.newFixedThreadPool(2 * FETCHERS);
    try {
      final List<CompletableFuture<Map<BlockPath, Integer>>> readings = new ArrayList<>();
      for (int i = 0; i < 2 * FETCHERS; i++) {
        final SentNodes.Member by = i % 2 == 0 ? reader : other;
        readings.add(CompletableFuture.supplyAsync(by::read, threads));
      }
      final CompletableFuture<Void> all =
          CompletableFuture.allOf(readings.toArray(new CompletableFuture<?>[0]));
      while (!all.isDone()) {
        look();
      }
      for (final CompletableFuture<Map<BlockPath, Integer>> each : readings) {
        assertThat(each.get(1, TimeUnit.SECONDS)).containsOnlyKeys(BlockPath.SENT);
      }
    } finally {
      threads.shutdownNow();
    }
    assertThat(sending).as("windows that are sent").isPositive().isLessThanOrEqualTo(LIMIT);
    assertThat(pinnedByOwner.most())
        .as("copies from the GPU, packed ones, and what is kept for the next ones")
        .isPositive()
        .isLessThanOrEqualTo((long) (3 * LIMIT * ROUNDED));
    assertThat(reserved)
        .as("with a block for each that waited too long")
        .isPositive()
        .isLessThanOrEqualTo(LIMIT + FETCHERS * SentNodes.MOST);
    assertThat(pinnedByReader.most())
        .as("what is reserved, a window of each that is being read, and what is kept")
        .isPositive()
        .isLessThanOrEqualTo((long) ((2 * LIMIT + FETCHERS * WINDOW) * ROUNDED));
  }

  private void look() {
    final ReceiveBuffers there = owner.stats().receiveBuffers();
    sending = Math.max(sending, there.sendingBytes());
    reserved = Math.max(reserved, reader.stats().receiveBuffers().bytes());
  }
}
