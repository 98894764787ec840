package io.zerohop.shuffle.transport.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.WaitException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.fetch.Fetches.MovedBlocks;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * What a reader may expect of its blocks whatever way they come: each once, with the bytes that
 * were written or not at all, and nothing held at either end when it is done, or gives up.
 */
@Timeout(120)
public abstract class PathContract {
  protected static final int SHUFFLE = 1;
  private static final int MAPS = 6;
  private static final int PARTITIONS = 40;
  private static final int MOST = 3_000;
  private static final int BATCHES = 2;

  @TempDir private java.nio.file.Path folder;
  private final Leaks leaks = new Leaks();
  protected final ServedBlocks served = new ServedBlocks();
  private FallbackTransport fallback;
  protected ShuffleNode owner;
  private ShuffleNode reader;

  /** The way that all blocks go. */
  protected abstract BlockPath path();

  /** Whether the reader is the owner, or a node of its own. */
  protected boolean isOwn() {
    return false;
  }

  /** How nodes are configured so that blocks go this way. */
  protected ShuffleNode.Setup configure(final ShuffleNode.Setup config, final String executor) {
    return config;
  }

  /** By what the fallback knows the owner. */
  protected Object address() {
    return "owner";
  }

  /** How many bytes of a block are moved: others than its own where they are compressed first. */
  protected long movedBytes(final Block block) {
    return block.bytes();
  }

  /**
   * Whether a block that is nowhere fails alone, and not together with what was asked for with it.
   */
  protected boolean failsAlone() {
    return true;
  }

  /** What serves blocks in the end. Closed by {@link #endFallback}. */
  protected FallbackTransport startFallback() {
    return served;
  }

  protected void endFallback() {}

  @BeforeEach
  void start() {
    owner = startNode("owner");
    reader = isOwn() ? owner : startNode("reader");
    served.serve("owner", owner);
    fallback = startFallback();
  }

  private ShuffleNode startNode(final String executor) {
    final ShuffleNode.Setup config = TestNodes.config(folder.resolve("s"), executor);
    return ShuffleNode.start(configure(config.set("fetch.window.blocks", 30), executor));
  }

  @AfterEach
  void nothingIsHeld() {
    if (reader == null) {
      return; // Skipped.
    }
    for (final ShuffleNode node : List.of(reader, owner)) {
      node.unregisterShuffle(SHUFFLE);
      TestNodes.assertNothingHeld(node);
    }
    served.assertAllReleased();
    endFallback();
    served.close();
    reader.close();
    owner.close();
    checkLeaks(leaks);
  }

  /**
   * What a test had is given back.
   *
   * @param before of the test
   */
  protected void checkLeaks(final Leaks before) {
    before.check();
  }

  protected final BlockSource write(final int maps) {
    return write(0, maps, PARTITIONS, MOST);
  }

  private BlockSource write(
      final int firstMap, final int maps, final int partitions, final int most) {
    for (int map = firstMap; map < firstMap + maps; map++) {
      TestBlocks.write(owner, SHUFFLE, map, BATCHES, partitions, most);
    }
    return source(
        TestBlocks.source(
                "owner", owner.location(), SHUFFLE, firstMap, maps, BATCHES, partitions, most)
            .blocks());
  }

  private BlockSource source(final List<Block> blocks) {
    return new BlockSource("owner", owner.location(), address(), blocks);
  }

  private Fetch fetch(final BlockSource source, final AtomicBoolean cancelled) {
    return reader.fetch(List.of(source), fallback, TestNodes.quiet(), cancelled::get);
  }

  protected final Fetch fetch(final BlockSource source) {
    return fetch(source, new AtomicBoolean());
  }

  private void readAll(final BlockSource source, final int most) {
    assertThat(TestNodes.fetchAndCheck(reader, fallback, BATCHES, most, this::movedBytes, source))
        .containsOnlyKeys(path());
  }

  private static void check(final FetchedBlock fetched) {
    final Block block = fetched.block();
    assertThat(TestNodes.read(fetched))
        .as("%s", block)
        .isEqualTo(TestBlocks.block(SHUFFLE, block.mapId(), BATCHES, block.partition(), MOST));
  }

  @Test
  void everyBlockComesOnce() {
    readAll(write(MAPS), MOST);
  }

  @Test
  void nothingIsFetchedForNoBlocks() {
    write(1);
    try (Fetch fetcher = fetch(source(List.of()))) {
      assertThat(fetcher.next()).isFalse();
    }
  }

  @Test
  void longBlocksComeWhole() {
    final int most = 1 << 20;
    readAll(write(0, 2, 3, most), most);
  }

  /** As a task does that reads a part of a skewed partition. */
  @Test
  void partOfTheBlocksComesAlone() {
    final BlockSource all = write(MAPS);
    final List<Block> wanted =
        all.blocks().stream().filter(block -> block.partition() % 7 == 3).toList();
    readAll(source(wanted), MOST);
  }

  @Test
  void whatIsWrittenLaterComesToo() {
    readAll(write(2), MOST);
    readAll(write(2, MAPS, PARTITIONS, MOST), MOST);
  }

  @Test
  void blocksAndBytesAreCounted() {
    final BlockSource source = write(MAPS);
    readAll(source, MOST);
    final MovedBlocks moved = reader.fetches().moved(path());
    assertThat(moved.blocks()).isEqualTo(source.blocks().size());
    assertThat(moved.bytes()).isEqualTo(source.blocks().stream().mapToLong(this::movedBytes).sum());
  }

  @Test
  void readersDoNotDisturbOneAnother() throws Exception {
    final BlockSource source = write(MAPS);
    final ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      final List<Future<?>> readers = new ArrayList<>();
      for (int i = 0; i < 12; i++) {
        readers.add(threads.submit(() -> readAll(source, MOST)));
      }
      for (final Future<?> each : readers) {
        each.get(60, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void aFetcherThatIsClosedEarlyHoldsNothing() {
    final BlockSource source = write(MAPS);
    for (final int stop : new int[] {0, 1, 2, 31, 62}) {
      try (Fetch fetcher = fetch(source)) {
        for (int i = 0; i < stop; i++) {
          assertThat(fetcher.next()).isTrue();
          check(fetcher.block());
        }
      }
    }
    TestNodes.eventually("no lease is left", () -> owner.stats().leases().open() == 0);
  }

  @Test
  void aCancelledFetchEnds() {
    final AtomicBoolean cancelled = new AtomicBoolean();
    try (Fetch fetcher = fetch(write(MAPS), cancelled)) {
      assertThat(fetcher.next()).isTrue();
      cancelled.set(true);
      assertThatThrownBy(
              () -> {
                while (fetcher.next()) {
                  check(fetcher.block());
                }
              })
          .isInstanceOf(WaitException.class);
    }
  }

  @Test
  void whoClosesAtAnyTimeEndsTheReader() throws Exception {
    final BlockSource source = write(MAPS);
    final ExecutorService thread = Executors.newSingleThreadExecutor();
    try {
      for (int round = 0; round < 60; round++) {
        final Fetch fetcher = fetch(source);
        final Future<?> reading = thread.submit(() -> TestNodes.readToTheEndOrClose(fetcher));
        LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(50L * round));
        fetcher.close();
        reading.get(60, TimeUnit.SECONDS);
      }
    } finally {
      thread.shutdownNow();
    }
  }

  /** Blocks may be missed then, but none has other bytes than its own. */
  @Test
  void whatIsUnregisteredWhileItIsReadIsRightOrMissed() {
    final BlockSource source = write(MAPS);
    for (int after = 1; after < 60; after += 29) {
      try (Fetch fetcher = fetch(source)) {
        for (int i = 0; fetcher.next(); i++) {
          if (i == after) {
            owner.unregisterShuffle(SHUFFLE);
            write(MAPS, MAPS, PARTITIONS, MOST); // Into the memory that this gives back.
          }
          check(fetcher.block());
        }
      } catch (final BlockFetchException e) {
        assertThat(e.source().executorId()).isEqualTo("owner");
      }
      owner.unregisterShuffle(SHUFFLE);
      write(MAPS);
    }
  }

  @Test
  void aBlockThatIsNowhereFailsItsFetch() {
    final BlockSource source = write(MAPS);
    owner.remove(SHUFFLE, 3);
    assertThatThrownBy(() -> readAll(source, MOST))
        .isInstanceOfSatisfying(
            BlockFetchException.class,
            e -> {
              assertThat(e.source()).isEqualTo(source);
              assertThat(e.block().mapId() == 3 || !failsAlone()).as("%s", e.block()).isTrue();
            });
  }
}
