package io.zerohop.shuffle.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.transport.Transport.Sink;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Who shares a transfer with whom, and how long the bytes stay. */
class SharedTransfersTest extends SharedTransfersFixture {
  @Test
  void whoAsksForWhatIsOnItsWayJoins() {
    final Reader first = new Reader();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS.subList(0, 2), first);
    shared.fetch(SOURCE, BLOCKS, second);
    network.awaitAsked(3);
    assertThat(shared.joined()).isEqualTo(2);
    network.arrive();
    first.checkAndRelease(2);
    second.checkAndRelease(3);
  }

  /** Owners look blocks up, and send them, in the order in which they lie. */
  @Test
  void blocksAreRequestedInTheirOrder() {
    final List<Block> many = TestBlocks.source("owner", null, 1, 1, 50, 1, 20, MOST).blocks();
    final List<Block> requested = new ArrayList<>();
    final HeldTransport ordered =
        new HeldTransport(
            (source, blocks, sink) -> {
              requested.addAll(blocks);
              bytes.fetch(source, blocks, sink);
            });
    share(ordered);
    final Reader reader = new Reader();
    shared.fetch(SOURCE, many, reader);
    ordered.awaitAsked(many.size());
    ordered.arrive();
    assertThat(requested).isEqualTo(many);
    reader.checkAndRelease(many.size());
  }

  @Test
  void whoComesAfterItHasArrivedStartsAnew() {
    final Reader first = new Reader();
    shared.fetch(SOURCE, BLOCKS, first);
    network.awaitAsked(3);
    network.arrive();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, second);
    network.awaitAsked(6);
    network.arrive();
    first.checkAndRelease(3);
    second.checkAndRelease(3);
    assertThat(shared.joined()).isZero();
  }

  @Test
  void othersBlocksOfTheSameNameAreOthers() {
    final Reader first = new Reader();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, first);
    shared.fetch(source("another"), BLOCKS, second);
    network.awaitAsked(6);
    network.arrive();
    first.checkAndRelease(3);
    second.checkAndRelease(3);
  }

  @Test
  void whatIsNotSharedIsAskedForByTheReaderItself() {
    final Thread[] asker = new Thread[1];
    share(
        (source, blocks, sink) -> {
          asker[0] = Thread.currentThread();
          bytes.fetch(source, blocks, sink);
        });
    final Reader reader = new Reader();
    shared.fetch(source("self"), BLOCKS, reader);
    assertThat(asker[0]).isSameAs(Thread.currentThread());
    reader.checkAndRelease(3);
  }

  @Test
  void thePayloadIsReleasedWithItsLastShareAndOnlyOnce() {
    final Reader first = new Reader();
    final Reader second = new Reader();
    final Block block = BLOCKS.get(0);
    shared.fetch(SOURCE, List.of(block), first);
    shared.fetch(SOURCE, List.of(block), second);
    network.awaitAsked(1);
    network.arrive();
    assertThat(bytes.requests()).isEqualTo(1);
    final Payload share = first.arrived.get(block);
    share.release();
    share.release(); // Not the other's.
    assertThatThrownBy(bytes::assertAllReleased).isInstanceOf(AssertionError.class);
    second.checkAndRelease(1);
    bytes.assertAllReleased();
  }

  @Test
  void aStreamEndsWithItsShareWhoeverHasTheOthers() throws IOException {
    final Reader first = new Reader();
    final Reader second = new Reader();
    final Block block = BLOCKS.get(0);
    shared.fetch(SOURCE, List.of(block), first);
    shared.fetch(SOURCE, List.of(block), second);
    network.awaitAsked(1);
    network.arrive();
    final Payload share = first.arrived.get(block);
    final InputStream stream = share.open(() -> false);
    assertThat(stream.read()).isNotNegative();
    share.release();
    assertThatThrownBy(stream::read).isInstanceOf(IOException.class);
    assertThatThrownBy(stream::readAllBytes).isInstanceOf(IOException.class);
    assertThatThrownBy(() -> share.open(() -> false)).isInstanceOf(IOException.class);
    stream.close();
    second.checkAndRelease(1);
  }

  @Test
  void nobodyJoinsWhatIsOverdueAndBothAnswersCount() {
    share(network, Duration.ZERO);
    final Reader first = new Reader();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, first);
    shared.fetch(SOURCE, BLOCKS, second);
    network.awaitAsked(6);
    assertThat(shared.open()).isEqualTo(6);
    network.arrive();
    first.checkAndRelease(3);
    second.checkAndRelease(3);
  }

  @Test
  void manyReadersOfFewBlocks() throws Exception {
    final ExecutorService wire = Executors.newFixedThreadPool(2);
    final ExecutorService readers = Executors.newFixedThreadPool(6);
    share((source, blocks, sink) -> wire.execute(() -> bytes.fetch(source, blocks, sink)));
    try {
      final List<Future<?>> all = new ArrayList<>();
      for (int reader = 0; reader < 6; reader++) {
        final Random random = new Random(reader);
        all.add(readers.submit(() -> readOften(random)));
      }
      for (final Future<?> each : all) {
        each.get(60, TimeUnit.SECONDS);
      }
    } finally {
      readers.shutdownNow();
      wire.shutdown();
      assertThat(wire.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(shared.joined()).isPositive();
  }

  private Void readOften(final Random random) throws InterruptedException {
    final LinkedBlockingQueue<Map.Entry<Block, Payload>> queue = new LinkedBlockingQueue<>();
    final Sink sink =
        new Sink() {
          @Override
          public void arrived(final Block block, final Payload payload) {
            queue.add(Map.entry(block, payload));
          }

          @Override
          public void failed(final Block block, final Throwable cause) {
            throw new AssertionError(cause);
          }
        };
    for (int round = 0; round < 1_000; round++) {
      final List<Block> wanted = BLOCKS.subList(random.nextInt(BLOCKS.size()), BLOCKS.size());
      shared.fetch(SOURCE, wanted, sink);
      for (int i = 0; i < wanted.size(); i++) {
        final Map.Entry<Block, Payload> next = queue.poll(20, TimeUnit.SECONDS);
        assertThat(next).isNotNull();
        check(next.getKey(), next.getValue());
        next.getValue().release();
      }
    }
    return null;
  }
}
