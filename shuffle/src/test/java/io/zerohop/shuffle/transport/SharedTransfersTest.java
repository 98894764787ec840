package io.zerohop.shuffle.transport;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.transport.Transport.Sink;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who shares a transfer with whom, and that nobody's end is another's. */
class SharedTransfersTest {
  private static final int MOST = 2_000;
  private static final List<Block> BLOCKS =
      TestBlocks.source("owner", null, 1, 1, 1, 1, 20, MOST).blocks().subList(0, 3);
  private static final BlockSource SOURCE = source("owner");

  private static final Duration LONG = Duration.ofHours(1);

  private final Leaks leaks = new Leaks();
  private final FakeStaging bytes = new FakeStaging(1, MOST);
  private final Network network = new Network(bytes);
  private SharedTransfers shared = sharing(network, LONG);

  private static BlockSource source(final String owner) {
    return new BlockSource(owner, null, owner, BLOCKS);
  }

  private static SharedTransfers sharing(
      final FallbackTransport transport, final Duration patience) {
    return new SharedTransfers(
        transport, source -> !source.executorId().equals("self"), 2, patience);
  }

  private void share(final FallbackTransport transport) {
    share(transport, LONG);
  }

  private void share(final FallbackTransport transport, final Duration patience) {
    shared.close();
    shared = sharing(transport, patience);
  }

  @AfterEach
  void nothingIsLeft() {
    assertThat(shared.open()).isZero();
    shared.close();
    bytes.assertAllReleased();
    leaks.check();
  }

  /** A transport whose blocks arrive when the test says so. */
  private static final class Network implements FallbackTransport {
    private final Queue<Runnable> arrivals = new ConcurrentLinkedQueue<>();
    private final AtomicInteger asked = new AtomicInteger();
    private final FallbackTransport transport;

    Network(final FallbackTransport transport) {
      this.transport = transport;
    }

    @Override
    public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
      arrivals.add(() -> transport.fetch(source, blocks, sink));
      asked.addAndGet(blocks.size());
    }

    /** Waits until so many blocks have been asked for in all. */
    void awaitAsked(final int blocks) {
      eventually(blocks + " blocks are asked for", () -> asked.get() >= blocks);
      assertThat(asked).hasValue(blocks);
    }

    void arrive() {
      for (Runnable next = arrivals.poll(); next != null; next = arrivals.poll()) {
        next.run();
      }
    }
  }

  private static class Reader implements Sink {
    private final Map<Block, Payload> arrived = new ConcurrentHashMap<>();
    private final Map<Block, Throwable> failed = new ConcurrentHashMap<>();

    @Override
    public void arrived(final Block block, final Payload payload) {
      assertThat(arrived.put(block, payload)).isNull();
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      assertThat(failed.put(block, cause)).isNull();
    }

    void checkAndRelease(final int blocks) {
      assertThat(arrived).hasSize(blocks);
      assertThat(failed).isEmpty();
      arrived.forEach(SharedTransfersTest::check);
      arrived.values().forEach(Payload::release);
      arrived.clear();
    }
  }

  private static void check(final Block block, final Payload payload) {
    final byte[] expected =
        TestBlocks.block(block.shuffleId(), block.mapId(), 1, block.partition(), MOST);
    assertThat(payload.bytes()).isEqualTo(expected.length);
    try (InputStream in = payload.open()) {
      assertThat(in.readAllBytes()).isEqualTo(expected);
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

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
    final InputStream stream = share.open();
    assertThat(stream.read()).isNotNegative();
    share.release();
    assertThatThrownBy(stream::read).isInstanceOf(IOException.class);
    assertThatThrownBy(stream::readAllBytes).isInstanceOf(IOException.class);
    assertThatThrownBy(share::open).isInstanceOf(IOException.class);
    stream.close();
    second.checkAndRelease(1);
  }

  @Test
  void aFailureIsEverybodysAndTheNextOneTriesAgain() {
    final IOException cause = new IOException("connection reset");
    final Network failing =
        new Network((source, blocks, sink) -> blocks.forEach(block -> sink.failed(block, cause)));
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

  private static void awaitOrFail(final CountDownLatch latch) {
    try {
      assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
    } catch (final InterruptedException e) {
      throw new IllegalStateException("interrupted while connecting", e);
    }
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
