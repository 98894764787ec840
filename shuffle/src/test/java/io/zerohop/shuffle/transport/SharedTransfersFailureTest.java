package io.zerohop.shuffle.transport;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.transport.Transport.Payload;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Whoever fails, is killed or ends late: it is nobody else's failure. */
class SharedTransfersFailureTest extends SharedTransfersFixture {
  @Test
  void aFailureIsEverybodysAndTheNextOneTriesAgain() {
    final IOException cause = new IOException("connection reset");
    final HeldTransport failing =
        new HeldTransport(
            (source, blocks, sink) -> blocks.forEach(block -> sink.failed(block, cause)));
    share(failing);
    final Reader first = new Reader();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, first);
    shared.fetch(SOURCE, BLOCKS, second);
    failing.awaitAsked(3);
    failing.arrive();
    for (final Reader reader : List.of(first, second)) {
      assertThat(reader.failed).hasSize(3).containsValue(cause);
    }
    shared.fetch(SOURCE, BLOCKS, new Reader());
    failing.awaitAsked(6);
    failing.arrive();
  }

  /** So that a reader asks for all of them again in one window. */
  @Test
  void whatFailsTogetherIsToldTogether() {
    final HeldTransport failing =
        new HeldTransport(
            (source, blocks, sink) -> sink.failed(blocks, new IOException("connection reset")));
    share(failing);
    final List<Integer> together = new ArrayList<>();
    for (final List<Block> wanted : List.of(BLOCKS, BLOCKS.subList(1, 3))) {
      shared.fetch(
          SOURCE,
          wanted,
          new Reader() {
            @Override
            public void failed(final Collection<Block> blocks, final Throwable cause) {
              together.add(blocks.size());
            }
          });
    }
    failing.awaitAsked(3);
    failing.arrive();
    assertThat(together).containsExactlyInAnyOrder(3, 2);
  }

  /** As a task that is killed while Spark's client connects for it. */
  @Test
  void aReaderThatIsInterruptedWhileItsBlocksAreAskedForFailsNobody() throws Exception {
    final CountDownLatch connected = new CountDownLatch(1);
    final CountDownLatch connecting = new CountDownLatch(1);
    share(
        (source, blocks, sink) -> {
          connecting.countDown();
          awaitOrFail(connected);
          network.fetch(source, blocks, sink);
        });
    final Reader killed = new Reader();
    final boolean[] stillInterrupted = {false};
    final Thread task =
        new Thread(
            () -> {
              Thread.currentThread().interrupt();
              shared.fetch(SOURCE, BLOCKS, killed);
              stillInterrupted[0] = Thread.currentThread().isInterrupted();
            });
    task.start();
    assertThat(connecting.await(20, TimeUnit.SECONDS)).isTrue();
    task.join(TimeUnit.SECONDS.toMillis(20));
    assertThat(task.isAlive()).as("it does not wait for the connection").isFalse();
    assertThat(stillInterrupted[0]).isTrue();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, second);
    connected.countDown();
    network.awaitAsked(3);
    network.arrive();
    second.checkAndRelease(3);
    killed.checkAndRelease(3);
  }

  @Test
  void whenTheAskingFailsOneIsToldAndItIsDoneAgainForTheOthers() {
    final CountDownLatch joined = new CountDownLatch(1);
    final AtomicInteger tries = new AtomicInteger();
    share(
        (source, blocks, sink) -> {
          if (tries.incrementAndGet() == 1) {
            awaitOrFail(joined);
            sink.arrived(BLOCKS.get(2), bytes.payload(BLOCKS.get(2)));
            throw new IllegalStateException("no client");
          }
          network.fetch(source, blocks, sink);
        });
    final Reader first = new Reader();
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, first);
    shared.fetch(SOURCE, BLOCKS.subList(0, 1), second);
    joined.countDown();
    network.awaitAsked(1);
    eventually("the first is told", () -> first.failed.size() == 2);
    assertThat(first.failed.keySet()).containsExactlyInAnyOrderElementsOf(BLOCKS.subList(0, 2));
    assertThat(first.failed.get(BLOCKS.get(0))).hasMessage("no client");
    network.arrive();
    second.checkAndRelease(1);
    assertThat(first.arrived).hasSize(1);
    first.arrived.values().forEach(Payload::release);
  }

  @Test
  void whatCannotBeAskedForHasFailed() {
    share(
        (source, blocks, sink) -> {
          throw new NoClassDefFoundError("a client");
        });
    final Reader reader = new Reader();
    shared.fetch(SOURCE, BLOCKS, reader);
    eventually("it is told", () -> reader.failed.size() == 3);
  }

  @Test
  void aReaderThatThrowsKeepsNobodyFromHis() {
    final Reader broken =
        new Reader() {
          @Override
          public void arrived(final Block block, final Payload payload) {
            throw new IllegalStateException("wanted by the test");
          }
        };
    final Reader second = new Reader();
    shared.fetch(SOURCE, BLOCKS, broken);
    shared.fetch(SOURCE, BLOCKS, second);
    network.awaitAsked(3);
    network.arrive();
    second.checkAndRelease(3);
    bytes.assertAllReleased();
  }

  @Test
  void whatIsReportedTwiceIsReleased() {
    share(
        (source, blocks, sink) -> {
          bytes.fetch(source, blocks, sink);
          bytes.fetch(source, blocks, sink);
          blocks.forEach(block -> sink.failed(block, new IOException("after it had arrived")));
        });
    final Reader reader = new Reader();
    shared.fetch(SOURCE, BLOCKS, reader);
    eventually("both are there", () -> bytes.requests() == 2 && shared.open() == 0);
    shared.close();
    reader.checkAndRelease(3);
  }

  @Test
  void closingFailsWhatIsUnderWayAndWhatWaitsForAThread() throws Exception {
    final CountDownLatch never = new CountDownLatch(1);
    final CountDownLatch asking = new CountDownLatch(2);
    share(
        (source, blocks, sink) -> {
          asking.countDown();
          awaitOrFail(never);
        });
    final Reader reader = new Reader();
    for (final Block block : BLOCKS) {
      shared.fetch(SOURCE, List.of(block), reader);
    }
    assertThat(asking.await(20, TimeUnit.SECONDS)).isTrue();
    shared.close();
    assertThat(reader.failed).hasSize(3);
    assertThatThrownBy(() -> shared.fetch(SOURCE, BLOCKS, reader))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void whatArrivesAfterTheEndIsReleased() {
    final Reader reader = new Reader();
    shared.fetch(SOURCE, BLOCKS, reader);
    network.awaitAsked(3);
    shared.close();
    assertThat(reader.failed).hasSize(3);
    network.arrive();
    assertThat(reader.arrived).isEmpty();
  }
}
