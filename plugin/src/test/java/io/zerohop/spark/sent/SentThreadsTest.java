package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.block.BlockPath;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Event loops, which serve all of Spark, only move bytes. */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentThreadsTest {
  private static final int SAMPLES = 400;

  /** What event loops do for us: seen in the samples, else they would say nothing. */
  private static final List<String> MOVES = List.of("Arriving.bytes", "Uploads.take");

  /** Parts of names of classes, none of which has anything to do there. */
  private static final List<String> WORK =
      List.of(
          "HostCop",
          "Packing",
          "Crc32c",
          "CRC32C",
          "lz4",
          "io.zerohop.shuffle.catalog",
          "ServedLease",
          "RemoteExtents",
          "ReceiveLayout",
          "ReceivedPayload");

  @TempDir private java.nio.file.Path folder;
  private SentNodes nodes;
  private SentNodes.Member reader;

  @BeforeEach
  void start() throws IOException {
    nodes = new SentNodes(folder, Map.of());
    nodes.start("owner", config -> config, new DeviceOnlyGpu());
    reader = nodes.start("reader", config -> config.set("fetch.window.blocks", 4));
    nodes.write();
  }

  @AfterEach
  void nothingIsHeld() throws IOException {
    nodes.close();
  }

  @Test
  void eventLoopsOnlyMoveBytes() throws Exception {
    final AtomicBoolean over = new AtomicBoolean();
    final CompletableFuture<Void> reading =
        CompletableFuture.runAsync(
            () -> {
              while (!over.get()) {
                assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
              }
            });
    final Set<String> seen = new HashSet<>();
    try {
      for (int i = 0; (i < SAMPLES || !hasSeenMoves(seen)) && !reading.isDone(); i++) {
        sample(seen);
      }
    } finally {
      over.set(true);
      reading.get(30, TimeUnit.SECONDS);
    }
    final Set<String> work = new TreeSet<>(seen);
    work.removeIf(frame -> WORK.stream().noneMatch(frame::contains));
    assertThat(work).as("frames of event loops").isEmpty();
  }

  private static boolean hasSeenMoves(final Set<String> seen) {
    return seen.stream().anyMatch(frame -> MOVES.stream().anyMatch(frame::contains));
  }

  /** Spark's server, its clients and ours have such threads. */
  private static void sample(final Set<String> seen) {
    Thread.getAllStackTraces()
        .forEach(
            (thread, stack) -> {
              if (thread.getName().startsWith("shuffle-")) {
                Arrays.stream(stack)
                    .forEach(frame -> seen.add(frame.getClassName() + '.' + frame.getMethodName()));
              }
            });
  }
}
