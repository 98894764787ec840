package io.zerohop.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.Transport;
import java.io.InputStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A fetcher that is closed by one thread while another one reads. */
class CloseTest {
  private static final int PARTITIONS = 50;
  private static final int MOST = 1000;

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final FakeStaging staging = new FakeStaging(1, MOST);
  private final ExecutorService reader = Executors.newSingleThreadExecutor();
  private ShuffleNode node;

  @BeforeEach
  void start() {
    node =
        ShuffleNode.start(TestNodes.config(base.resolve("s"), "1").set("fetch.window.blocks", 7));
    for (int map = 0; map < 4; map++) {
      TestBlocks.write(node, 1, map, 1, PARTITIONS, MOST);
    }
  }

  @AfterEach
  void noLeaks() throws InterruptedException {
    reader.shutdown();
    assertThat(reader.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    node.unregisterShuffle(1);
    TestNodes.assertNothingHeld(node);
    staging.assertAllReleased();
    node.close();
    leaks.check();
  }

  private BlockSource here() {
    return TestBlocks.source("1", node.location(), 1, 0, 4, 1, PARTITIONS, MOST);
  }

  private static BlockSource elsewhere() {
    return TestBlocks.source("other", null, 1, 10, 2, 1, PARTITIONS, MOST);
  }

  @Test
  void aWaitForStagedBlocksEnds() throws Exception {
    final AtomicReference<Transport.Sink> sink = new AtomicReference<>();
    final BlockSource source = elsewhere();
    final Fetch fetcher =
        node.fetch(
            List.of(source), (from, blocks, to) -> sink.set(to), TestNodes.quiet(), () -> false);
    final Future<?> reading = reader.submit(() -> assertEndsClosed(fetcher));
    TestNodes.eventually("asked", () -> sink.get() != null);
    assertThat(fetcher.isClosed()).isFalse();
    fetcher.close();
    assertThat(fetcher.isClosed()).isTrue();
    reading.get();
    assertThat(node.stats().receiveBuffers().bytes()).isZero();
    source.blocks().forEach(block -> sink.get().arrived(block, staging.payload(block)));
  }

  /** The reader stays in the middle of opening a window for longer than the closing waits. */
  @Test
  void aWindowThatWasOpenedMeanwhileIsReleased() throws Exception {
    final CountDownLatch opened = new CountDownLatch(1);
    final CountDownLatch closed = new CountDownLatch(1);
    final Fetches.Listener slow =
        new Fetches.Listener() {
          @Override
          public void fetched(
              final BlockSource source,
              final Link link,
              final List<Block> blocks,
              final long bytes) {
            opened.countDown();
            awaitQuietly(closed);
          }

          @Override
          public void waited(final long nanos) {}
        };
    final Fetch fetcher = node.fetch(List.of(here()), TestNodes.noStaging(), slow, () -> false);
    final Future<?> reading = reader.submit(() -> assertEndsClosed(fetcher));
    awaitQuietly(opened);
    fetcher.close();
    assertThat(node.stats().leases().open()).as("the reader still works on it").isEqualTo(1);
    closed.countDown();
    reading.get();
    assertThat(node.stats().leases().open()).isZero();
    assertThatThrownBy(fetcher::block).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void closingAtAnyTimeLeavesNothing() throws Exception {
    for (int round = 0; round < 300; round++) {
      final Fetch fetcher =
          node.fetch(List.of(elsewhere(), here()), staging, TestNodes.quiet(), () -> false);
      final Future<?> reading = reader.submit(() -> TestNodes.readToTheEndOrClose(fetcher));
      LockSupport.parkNanos(round * 5_000L);
      fetcher.close();
      reading.get();
      assertThat(node.stats().leases().open()).isZero();
      assertThat(node.stats().receiveBuffers().bytes()).isZero();
      staging.assertAllReleased();
    }
  }

  @Test
  void aClosedFetcherIsNotAskedForMore() {
    final Fetch fetcher =
        node.fetch(List.of(here()), TestNodes.noStaging(), TestNodes.quiet(), () -> false);
    assertThat(fetcher.next()).isTrue();
    fetcher.checkIntact();
    fetcher.close();
    fetcher.close();
    assertThatThrownBy(fetcher::next).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(fetcher::checkIntact).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void whatCannotBeReleasedKeepsNothingElse() {
    final Map<Block, Transport.Sink> asked = new LinkedHashMap<>();
    final AtomicInteger released = new AtomicInteger();
    final Fetch fetcher =
        node.fetch(
            List.of(elsewhere(), here()),
            (source, blocks, sink) -> blocks.forEach(block -> asked.put(block, sink)),
            TestNodes.quiet(),
            () -> false);
    assertThat(fetcher.next()).isTrue();
    assertThat(node.stats().leases().open()).isEqualTo(1);
    asked.forEach((block, sink) -> sink.arrived(block, new Unreleasable(released)));
    assertThatThrownBy(fetcher::close)
        .hasMessage("release 1")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(asked.size() - 1));
    assertThat(released).hasValue(asked.size());
    assertThat(node.stats().leases().open()).isZero();
  }

  @Test
  void whatNobodyHasReadIsReleasedWhereTheRestMayBeReadYet() {
    final Map<Block, Transport.Sink> asked = new LinkedHashMap<>();
    final AtomicBoolean isRead = new AtomicBoolean(true);
    final AtomicInteger released = new AtomicInteger();
    final Fetch fetcher =
        node.fetch(
            List.of(elsewhere(), here()),
            (source, blocks, sink) -> blocks.forEach(block -> asked.put(block, sink)),
            TestNodes.quiet(),
            () -> false);
    fetcher.releasing(
        () -> {
          if (isRead.get()) {
            throw new IllegalStateException("read yet");
          }
        },
        released::incrementAndGet);
    assertThat(fetcher.next()).isTrue();
    asked.forEach((block, sink) -> sink.arrived(block, staging.payload(block)));
    assertThatThrownBy(fetcher::close).hasMessage("read yet");
    staging.assertAllReleased();
    assertThat(node.stats().receiveBuffers().bytes()).isZero();
    assertThat(node.stats().leases().open()).as("its block may be read").isEqualTo(1);
    assertThat(released).hasValue(0);
    isRead.set(false);
    fetcher.close();
    assertThat(node.stats().leases().open()).isZero();
    assertThat(released).hasValue(1);
  }

  private record Unreleasable(AtomicInteger released) implements Transport.Payload {
    @Override
    public long bytes() {
      return 1;
    }

    @Override
    public InputStream open(final BooleanSupplier ended) {
      return InputStream.nullInputStream();
    }

    @Override
    public void release() {
      throw new IllegalStateException("release " + released.incrementAndGet());
    }
  }

  private static void assertEndsClosed(final Fetch fetcher) {
    assertThatThrownBy(fetcher::next)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  private static void awaitQuietly(final CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
