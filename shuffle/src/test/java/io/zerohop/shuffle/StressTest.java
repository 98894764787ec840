package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.transport.FakeStaging;
import java.util.EnumMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Writers publish, replace, remove and unregister while readers, in place, check every byte. The
 * pool is small, so memory is reused at once; checksums are off, so that a torn entry or a region
 * that was freed under its reader shows as wrong bytes.
 */
class StressTest {
  private static final int PARTITIONS = 40;
  private static final int MOST = 600;
  private static final int MAPS = 12;
  private static final int SHUFFLES = 3;
  private static final long RUN_NANOS = TimeUnit.SECONDS.toNanos(6);

  @TempDir private java.nio.file.Path base;

  @Test
  void readersNeverSeeWrongBytes() throws Exception {
    final Leaks leaks = new Leaks();
    final AtomicBoolean stop = new AtomicBoolean();
    final ExecutorService threads = Executors.newFixedThreadPool(6);
    final Map<BlockPath, Integer> counts = new EnumMap<>(BlockPath.class);
    try (ShuffleNode owner =
            ShuffleNode.start(
                TestNodes.config(base, "owner")
                    .set("checksum.enabled", false)
                    .set("pool.size", 4 << 20));
        ShuffleNode peer =
            ShuffleNode.start(TestNodes.config(base, "peer").set("checksum.enabled", false))) {
      final CompletableFuture<?>[] all = new CompletableFuture<?>[5];
      for (int i = 0; i < 2; i++) {
        final int seed = i;
        all[i] = CompletableFuture.runAsync(() -> write(owner, seed, stop), threads);
      }
      for (int i = 2; i < 5; i++) {
        final ShuffleNode reader = i == 2 ? owner : peer;
        all[i] = CompletableFuture.runAsync(() -> read(owner, reader, stop, counts), threads);
      }
      TimeUnit.NANOSECONDS.sleep(RUN_NANOS);
      stop.set(true);
      CompletableFuture.allOf(all).join();
      for (int shuffle = 0; shuffle < SHUFFLES; shuffle++) {
        owner.unregisterShuffle(shuffle);
      }
      TestNodes.assertNothingHeld(owner);
      TestNodes.assertNothingHeld(peer);
    } finally {
      stop.set(true);
      threads.shutdownNow();
    }
    assertThat(counts.get(BlockPath.LOCAL)).isPositive();
    assertThat(counts.get(BlockPath.PEER)).isPositive();
    leaks.check();
  }

  private static void write(final ShuffleNode owner, final int seed, final AtomicBoolean stop) {
    final Random random = new Random(seed);
    while (!stop.get()) {
      final int shuffle = random.nextInt(SHUFFLES);
      final int what = random.nextInt(40);
      if (what == 0) {
        owner.unregisterShuffle(shuffle);
      } else if (what < 6) {
        owner.remove(shuffle, random.nextInt(MAPS));
      } else {
        final long map = random.nextInt(MAPS);
        try {
          TestBlocks.write(owner, shuffle, map, 1, PARTITIONS, MOST);
        } catch (final io.zerohop.device.ZerohopException e) {
          // Unregistered meanwhile by the other writer, or the pool is full of retired regions.
          assertThat(e.category())
              .isNotEqualTo(io.zerohop.device.ZerohopException.Category.FETCH_FAILED);
        }
      }
    }
  }

  private static void read(
      final ShuffleNode owner,
      final ShuffleNode reader,
      final AtomicBoolean stop,
      final Map<BlockPath, Integer> counts) {
    int shuffle = 0;
    while (!stop.get()) {
      final FakeStaging staging = new FakeStaging(1, MOST);
      final Map<BlockPath, Integer> read =
          TestNodes.fetchAndCheck(
              reader,
              staging,
              1,
              MOST,
              TestBlocks.source(
                  "owner", owner.location(), shuffle++ % SHUFFLES, 0, MAPS, 1, PARTITIONS, MOST));
      staging.assertAllReleased();
      synchronized (counts) {
        read.forEach((path, count) -> counts.merge(path, count, Integer::sum));
      }
    }
  }
}
