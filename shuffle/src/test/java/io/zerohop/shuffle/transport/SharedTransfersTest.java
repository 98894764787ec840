package io.zerohop.shuffle.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.Block;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.fetch.BlockSource;
import io.zerohop.shuffle.transport.StagedTransport.Sink;
import io.zerohop.shuffle.transport.StagedTransport.StagedPayload;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class SharedTransfersTest {
  private static final int MOST = 2_000;
  private static final List<Block> BLOCKS =
      List.of(new Block(1, 1, 0, 1, 10), new Block(1, 1, 0, 2, 10), new Block(1, 2, 1, 1, 10));
  private static final BlockSource SOURCE = new BlockSource("owner", null, "owner", BLOCKS);

  private final FakeStaging bytes = new FakeStaging(1, MOST);

  /** A transport whose blocks arrive when the test says so. */
  private static final class Slow implements StagedTransport {
    private final List<Runnable> arrivals = new ArrayList<>();
    private final StagedTransport transport;
    private int asked;

    Slow(final StagedTransport transport) {
      this.transport = transport;
    }

    @Override
    public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
      asked += blocks.size();
      arrivals.add(() -> transport.fetch(source, blocks, sink));
    }

    void arrive() {
      List.copyOf(arrivals).forEach(Runnable::run);
      arrivals.clear();
    }
  }

  private static final class Reader implements Sink {
    private final Map<Block, StagedPayload> arrived = new ConcurrentHashMap<>();
    private final Map<Block, Throwable> failed = new ConcurrentHashMap<>();

    @Override
    public void arrived(final Block block, final StagedPayload payload) {
      assertThat(arrived.put(block, payload)).isNull();
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      assertThat(failed.put(block, cause)).isNull();
    }

    void checkAndRelease() {
      arrived.forEach(SharedTransfersTest::check);
      arrived.values().forEach(StagedPayload::release);
      arrived.clear();
    }
  }

  private static void check(final Block block, final StagedPayload payload) {
    final byte[] expected =
        TestBlocks.block(block.shuffleId(), block.mapId(), 1, block.partition(), MOST);
    try (InputStream in = payload.open()) {
      assertThat(in.readAllBytes()).isEqualTo(expected);
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void whoAsksForTheSameBlocksSharesThem() {
    final Slow slow = new Slow(bytes);
    final SharedTransfers shared = new SharedTransfers(slow);
    final Reader first = new Reader();
    final Reader second = new Reader();
    final Reader third = new Reader();
    shared.fetch(SOURCE, BLOCKS.subList(0, 2), first);
    shared.fetch(SOURCE, BLOCKS, second);
    assertThat(slow.asked).isEqualTo(3);
    slow.arrive();
    shared.fetch(SOURCE, BLOCKS.subList(1, 2), third);
    assertThat(slow.asked).isEqualTo(3);
    assertThat(first.arrived).hasSize(2);
    assertThat(second.arrived).hasSize(3);
    assertThat(third.arrived).hasSize(1);
    first.checkAndRelease();
    second.checkAndRelease();
    assertThat(shared.open()).as("the third has one").isEqualTo(1);
    third.checkAndRelease();
    assertThat(shared.open()).isZero();
    bytes.assertAllReleased();
    shared.fetch(SOURCE, BLOCKS.subList(0, 1), first);
    assertThat(slow.asked).as("what was released is fetched again").isEqualTo(4);
    slow.arrive();
    first.checkAndRelease();
    bytes.assertAllReleased();
  }

  @Test
  void aFailureIsEverybodysAndTheNextOneTriesAgain() {
    final Slow slow =
        new Slow(
            (source, blocks, sink) ->
                blocks.forEach(block -> sink.failed(block, new IOException("gone"))));
    final SharedTransfers shared = new SharedTransfers(slow);
    final Reader first = new Reader();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, first);
    shared.fetch(SOURCE, BLOCKS, second);
    slow.arrive();
    assertThat(first.failed).hasSize(3);
    assertThat(second.failed).hasSize(3);
    assertThat(shared.open()).isZero();
    shared.fetch(SOURCE, BLOCKS, new Reader());
    assertThat(slow.asked).isEqualTo(6);
  }

  @Test
  void whatCannotBeAskedForHasFailed() {
    final SharedTransfers shared =
        new SharedTransfers(
            (source, blocks, sink) -> {
              throw new IllegalStateException("no client");
            });
    final Reader reader = new Reader();
    shared.fetch(SOURCE, BLOCKS, reader);
    assertThat(reader.failed).hasSize(3);
    assertThat(shared.open()).isZero();
  }

  @Test
  void whatIsOverdueIsAskedForOnceMoreAndTheFirstAnswerCounts() {
    final Slow slow = new Slow(bytes);
    final SharedTransfers shared = new SharedTransfers(slow, Duration.ZERO);
    final Reader first = new Reader();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS.subList(0, 1), first);
    shared.fetch(SOURCE, BLOCKS.subList(0, 1), second);
    assertThat(slow.asked).isEqualTo(2);
    slow.arrive();
    first.checkAndRelease();
    second.checkAndRelease();
    assertThat(shared.open()).isZero();
    bytes.assertAllReleased();
  }

  @Test
  void manyReadersOfFewBlocks() throws Exception {
    final ExecutorService network = Executors.newFixedThreadPool(2);
    final ExecutorService readers = Executors.newFixedThreadPool(6);
    final SharedTransfers shared =
        new SharedTransfers(
            (source, blocks, sink) -> network.execute(() -> bytes.fetch(source, blocks, sink)));
    try {
      final List<Future<?>> all = new ArrayList<>();
      for (int reader = 0; reader < 6; reader++) {
        final Random random = new Random(reader);
        all.add(readers.submit(() -> readOften(shared, random)));
      }
      for (final Future<?> each : all) {
        each.get(60, TimeUnit.SECONDS);
      }
    } finally {
      readers.shutdownNow();
      network.shutdownNow();
    }
    assertThat(shared.open()).isZero();
    bytes.assertAllReleased();
    assertThat(bytes.requests()).isLessThan(6 * 2_000);
  }

  private static Void readOften(final SharedTransfers shared, final Random random)
      throws InterruptedException {
    final LinkedBlockingQueue<Map.Entry<Block, StagedPayload>> queue = new LinkedBlockingQueue<>();
    final Sink sink =
        new Sink() {
          @Override
          public void arrived(final Block block, final StagedPayload payload) {
            queue.add(Map.entry(block, payload));
          }

          @Override
          public void failed(final Block block, final Throwable cause) {
            throw new AssertionError(cause);
          }
        };
    for (int round = 0; round < 2_000; round++) {
      final List<Block> wanted = BLOCKS.subList(random.nextInt(BLOCKS.size()), BLOCKS.size());
      shared.fetch(SOURCE, wanted, sink);
      for (int i = 0; i < wanted.size(); i++) {
        final Map.Entry<Block, StagedPayload> next = queue.poll(20, TimeUnit.SECONDS);
        assertThat(next).isNotNull();
        check(next.getKey(), next.getValue());
        next.getValue().release();
      }
    }
    return null;
  }
}
