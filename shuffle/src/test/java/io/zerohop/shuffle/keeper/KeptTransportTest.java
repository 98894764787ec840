package io.zerohop.shuffle.keeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.zerohop.device.Fuzz;
import io.zerohop.device.TestClock;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.samenode.LeftBlocks;
import io.zerohop.shuffle.transport.ucx.LocalChannels;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What a keeper sends to other nodes, and who asks it. Blocks of map 0 have the sizes below. */
@Timeout(60)
class KeptTransportTest {
  private static final String SOCKET = "1-0000000000000007";
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final int[] SIZES = {10, 0, 5_000_000, 700_000, 700_000, 1};

  private final LocalChannels channels = new LocalChannels();
  private final Map<String, LeftBlocks> left = new ConcurrentHashMap<>();
  private final FakeStaging owners = new FakeStaging(block -> new byte[] {42});
  private final Semaphore notReached = new Semaphore(0);
  private final TestClock clock = TestClock.running();
  private final FarReads keeper = new FarReads(left::get, clock, () -> {});

  /** By which questions come to the keeper. */
  private Executor network = Runnable::run;

  private final ControlChannel answering =
      channels.open(
          new ControlService() {
            @Override
            public void asked(
                final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
              network.execute(() -> keeper.asked(link, question, answer));
            }

            @Override
            public void disconnected(final long link) {
              keeper.disconnected(link);
            }
          });

  private final KeptTransport transport =
      new KeptTransport(
          owners,
          source -> false,
          () -> channels.open(null),
          source -> notReached.release(),
          LIMIT,
          Clock.system());

  @AfterEach
  void nothingIsLeftOpen() {
    transport.close();
    assertThat(channels.openLinks()).isZero();
    answering.close();
  }

  private static byte[] bytesOf(final int partition) {
    final byte[] bytes = new byte[SIZES[partition]];
    new Random(partition).nextBytes(bytes);
    return bytes;
  }

  private static LeftBlocks blocks() {
    return blocks(partition -> partition < SIZES.length ? bytesOf(partition) : null);
  }

  /**
   * What an executor has left of one map output.
   *
   * @param content of a partition; absent if there is none
   */
  private static LeftBlocks blocks(final IntFunction<byte @Nullable []> content) {
    return new LeftBlocks() {
      @Override
      public boolean isInFile(final int shuffleId) {
        return false;
      }

      @Override
      public boolean isBeingCopied(final int shuffleId) {
        return false;
      }

      @Override
      public long bytes(final int shuffleId, final long mapId, final int partition) {
        final byte[] bytes = shuffleId == 1 && mapId == 0 ? content.apply(partition) : null;
        return bytes == null ? -1 : bytes.length;
      }

      @Override
      public boolean read(
          final int shuffleId,
          final long mapId,
          final int partition,
          final long from,
          final ByteBuffer to) {
        to.put(content.apply(partition), (int) from, to.remaining());
        return true;
      }
    };
  }

  private static Block block(final int partition) {
    return new Block(1, 0, 0, partition, 100);
  }

  private BlockSource source(final int... partitions) {
    final Location location =
        new Location("01234567", "0123456789abcdef", 7, 0, SOCKET).withKeeper(answering.port());
    final List<Block> blocks = IntStream.of(partitions).mapToObj(KeptTransportTest::block).toList();
    return new BlockSource("1", location, "host", "address", blocks, true);
  }

  /** What becomes of blocks, by partition. */
  private static final class Results implements Transport.Sink {
    private final Map<Integer, CompletableFuture<Transport.Payload>> results =
        new ConcurrentHashMap<>();

    private CompletableFuture<Transport.Payload> of(final Block block) {
      return results.computeIfAbsent(block.partition(), any -> new CompletableFuture<>());
    }

    @Override
    public void arrived(final Block block, final Transport.Payload payload) {
      assertThat(of(block).complete(payload)).isTrue();
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      assertThat(of(block).completeExceptionally(cause)).isTrue();
    }

    private byte[] bytes(final int partition) throws Exception {
      final Transport.Payload payload = of(block(partition)).get(30, TimeUnit.SECONDS);
      try (InputStream in = payload.open(() -> false)) {
        return in.readAllBytes();
      } finally {
        payload.release();
      }
    }
  }

  private Results fetch(final int... partitions) {
    final Results results = new Results();
    final BlockSource source = source(partitions);
    transport.fetch(source, source.blocks(), results);
    return results;
  }

  @Test
  void whatAnOwnerHasThatEndedComesFromTheKeeper() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    final Results results = fetch(0, 1, 2, 3, 4, 5);
    for (int partition = 0; partition < SIZES.length; partition++) {
      assertThat(results.bytes(partition)).isEqualTo(bytesOf(partition));
    }
    assertThat(keeper.sentBlocks()).isGreaterThan(SIZES.length); // The large one has parts.
    assertThat(keeper.sentBytes()).isEqualTo(IntStream.of(SIZES).sum());
  }

  @Test
  void anOwnerThatLivesIsAskedItself() throws Exception {
    left.put(SOCKET, blocks());
    assertThat(fetch(0).bytes(0)).containsExactly(42);
    assertThat(keeper.sentBlocks()).isZero();
  }

  @Test
  void whatTheKeeperDoesNotHaveFails() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    final Results results = fetch(9, 0);
    assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
    assertThat(results.of(block(9))).isCompletedExceptionally();
    assertToldOnce();
  }

  /** Nothing was told before, and the one request that does not get through is. */
  private void assertToldOnce() throws Exception {
    answering.close();
    assertThat(fetch(0).of(block(0)))
        .failsWithin(LIMIT)
        .withThrowableOfType(ExecutionException.class)
        .withCauseInstanceOf(ExchangeException.class);
    assertThat(notReached.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    transport.close(); // Ends the threads that would tell.
    assertThat(notReached.availablePermits()).isZero();
  }

  @Test
  void aKeeperThatRefusesAQuestionWasReached() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    channels.onQuestion =
        question -> {
          throw new IllegalStateException("too many questions wait for this keeper");
        };
    assertThat(fetch(0).of(block(0))).failsWithin(LIMIT);
    channels.onQuestion = question -> {};
    assertToldOnce();
  }

  /** It says nothing of the keeper that this executor has no thread to ask it. */
  @Test
  void aKeeperThatABusyExecutorCouldNotAskWasNotOutOfReach() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    channels.busy = true;
    assertThat(fetch(0).of(block(0))).failsWithin(LIMIT);
    assertThat(notReached.tryAcquire(1, TimeUnit.SECONDS)).isFalse();
  }

  @Test
  void ofAKeeperThatIsLostAndNotThereAgainIsTold() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    channels.onQuestion = question -> answering.close();
    assertThat(fetch(0).of(block(0))).failsWithin(LIMIT);
    assertThat(notReached.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
  }

  /** Its own end says nothing of keepers. */
  @Test
  void anExecutorThatEndsTellsNothing() {
    owners.desert();
    final AtomicInteger questions = new AtomicInteger();
    channels.onQuestion =
        question -> {
          if (questions.incrementAndGet() == 1) {
            channels.breakLinks();
          } else {
            transport.close();
          }
        };
    assertThat(fetch(0).of(block(0))).failsWithin(LIMIT);
    assertThat(questions).hasValue(2);
    assertThat(notReached.availablePermits()).isZero();
  }

  @Test
  void aKeeperThatHasNotTakenOverIsWaitedForAndNotForEver() throws Exception {
    owners.desert();
    final Results soon = fetch(0);
    left.put(SOCKET, blocks());
    keeper.round();
    assertThat(soon.bytes(0)).isEqualTo(bytesOf(0));
    left.clear();
    final Results never = fetch(0);
    keeper.round();
    assertThat(never.of(block(0))).isNotDone();
    clock.advance(Duration.ofSeconds(11));
    keeper.round();
    assertThat(never.of(block(0))).isCompletedExceptionally();
  }

  @Test
  void aLinkThatBreaksIsMadeAnewOnce() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    final AtomicInteger questions = new AtomicInteger();
    channels.onQuestion =
        question -> {
          if (questions.incrementAndGet() == 1) {
            channels.breakLinks();
          }
        };
    final Results results = fetch(0, 3);
    assertThat(results.bytes(3)).isEqualTo(bytesOf(3));
    assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
  }

  @Test
  void theRestOfALargeBlockThatIsGoneFailsTheFetch() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    final Results results = fetch(2);
    final Transport.Payload payload = results.of(block(2)).get(30, TimeUnit.SECONDS);
    left.clear();
    try (InputStream in = payload.open(() -> false)) {
      answering.close();
      assertThatThrownBy(in::readAllBytes)
          .isInstanceOfSatisfying(
              BlockFetchException.class, e -> assertThat(e.block()).isEqualTo(block(2)));
    }
    assertThat(notReached.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    payload.release();
    assertThatThrownBy(() -> payload.open(() -> false)).isInstanceOf(IOException.class);
  }

  @Test
  void anOwnerThatEndsMeanwhileIsReplaced() throws Exception {
    left.put(SOCKET, blocks());
    final AtomicInteger looks = new AtomicInteger();
    final FakeStaging dying =
        new FakeStaging(block -> new byte[0]) {
          @Override
          public boolean answers(final BlockSource source, final Duration limit) {
            looks.incrementAndGet();
            return super.answers(source, limit);
          }

          @Override
          public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
            desert();
            blocks.forEach(block -> sink.failed(block, new IOException("it was killed")));
          }
        };
    try (KeptTransport other = over(dying)) {
      final Results results = new Results();
      final BlockSource source = source(0, 5);
      other.fetch(source, source.blocks(), results);
      assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
      assertThat(results.bytes(5)).isEqualTo(bytesOf(5));
      assertThat(looks).hasValue(1);
    }
  }

  /** More than may wait at a keeper, if each were a question. */
  @Test
  void blocksThatFailOneByOneAreAskedForTogether() throws Exception {
    final int many = 2000;
    final AtomicInteger questions = new AtomicInteger();
    channels.onQuestion = question -> questions.incrementAndGet();
    try (KeptTransport other = over(refusing())) {
      final Results results = new Results();
      final BlockSource source = source(IntStream.range(0, many).toArray());
      other.fetch(source, source.blocks(), results);
      left.put(
          SOCKET, blocks(partition -> ByteBuffer.allocate(Long.BYTES).putLong(partition).array()));
      keeper.round();
      for (int partition = 0; partition < many; partition++) {
        assertThat(ByteBuffer.wrap(results.bytes(partition)).getLong()).isEqualTo(partition);
      }
    }
    assertThat(questions.get()).isLessThan(many / 10);
  }

  /** A host that says nothing takes the whole limit of a connect, each time. */
  @Test
  void aKeeperThatCannotBeReachedIsNotTriedForEachBlock() throws Exception {
    final AtomicInteger connects = new AtomicInteger();
    final TestClock still = TestClock.standing();
    try (KeptTransport other =
        new KeptTransport(
            refusing(),
            source -> false,
            () ->
                new Unreachable() {
                  @Override
                  public ControlLink connect(
                      final String host, final int port, final Duration limit) {
                    connects.incrementAndGet();
                    throw new ZerohopException(ZerohopException.Category.RETRY, "nobody answers");
                  }
                },
            source -> {},
            LIMIT,
            still)) {
      final BlockSource source = source(IntStream.range(0, 1000).toArray());
      final Results results = new Results();
      other.fetch(source, source.blocks(), results);
      for (final Block block : source.blocks()) {
        assertThat(results.of(block)).failsWithin(Duration.ofSeconds(30));
      }
      assertThat(connects).hasValue(1);
      still.advance(LIMIT.plusSeconds(1));
      final Results later = new Results();
      other.fetch(source, List.of(block(0)), later);
      assertThat(later.of(block(0))).failsWithin(Duration.ofSeconds(30));
      assertThat(connects).as("once its time is over").hasValue(2);
    }
  }

  /** Who answers at an owner's port, and gives none of its blocks. */
  private static FakeStaging refusing() {
    return new FakeStaging(block -> new byte[0]) {
      @Override
      public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
        blocks.forEach(block -> sink.failed(block, new IOException("cause " + block.partition())));
      }
    };
  }

  /** Each with its own cause, not with that of its neighbour. */
  @Test
  void blocksOfAnOwnerThatLivesFailWithTheirOwnCauses() {
    try (KeptTransport other = over(refusing())) {
      final Results results = new Results();
      final BlockSource source = source(IntStream.range(0, 100).toArray());
      other.fetch(source, source.blocks(), results);
      TestNodes.eventually(
          "the keeper says that it has not taken over",
          () -> {
            clock.advance(Duration.ofSeconds(11));
            keeper.round();
            return source.blocks().stream().allMatch(block -> results.of(block).isDone());
          });
      for (final Block block : source.blocks()) {
        assertThat(results.of(block))
            .failsWithin(Duration.ofSeconds(30))
            .withThrowableThat()
            .withMessageContaining("cause " + block.partition());
      }
    }
  }

  /** Its address answers, so only its keeper knows that it has ended. */
  @Test
  void anOwnerWhosePortAnotherHasIsReplaced() throws Exception {
    left.put(SOCKET, blocks());
    try (KeptTransport other = over(refusing())) {
      final BlockSource source = source(0, 5);
      for (int i = 0; i < 2; i++) {
        final Results results = new Results();
        other.fetch(source, source.blocks(), results);
        assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
        assertThat(results.bytes(5)).isEqualTo(bytesOf(5));
      }
    }
  }

  /** Another one may have its port for hours, and the keeper has said what became of it. */
  @Test
  void anOwnerThatHasLeftItsBlocksIsNeverAskedAgain() throws Exception {
    left.put(SOCKET, blocks());
    final TestClock passing = TestClock.standing();
    final AtomicInteger asked = new AtomicInteger();
    final FakeStaging taken =
        new FakeStaging(block -> new byte[0]) {
          @Override
          public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
            asked.incrementAndGet();
            sink.failed(blocks, new IOException("of another one"));
          }
        };
    try (KeptTransport other =
        new KeptTransport(
            taken, source -> false, () -> channels.open(null), source -> {}, LIMIT, passing)) {
      final BlockSource source = source(0, 5);
      for (int i = 0; i < 3; i++) {
        final Results results = new Results();
        other.fetch(source, source.blocks(), results);
        assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
        assertThat(results.bytes(5)).isEqualTo(bytesOf(5));
        passing.advance(Duration.ofHours(1));
        assertThat(other.answers(source, LIMIT)).isFalse();
      }
    }
    assertThat(asked).as("before it was known").hasValue(1);
  }

  /** Not even for what its keeper has dropped. */
  @Test
  void anOwnerThatIsKnownToHaveEndedIsNotAsked() throws Exception {
    left.put(SOCKET, blocks());
    transport.ended(source(0));
    assertThat(transport.answers(source(0), LIMIT)).isFalse();
    assertThat(fetch(0).bytes(0)).isEqualTo(bytesOf(0));
    left.clear();
    for (int i = 0; i < 2; i++) {
      final Results dropped = fetch(3);
      clock.advance(Duration.ofSeconds(11));
      keeper.round();
      assertThat(dropped.of(block(3))).failsWithin(LIMIT);
    }
    assertThat(owners.requests()).isZero();
  }

  @Test
  void anOwnerThatCannotBeAskedIsReplaced() throws Exception {
    left.put(SOCKET, blocks());
    final FakeStaging broken =
        new FakeStaging(block -> new byte[0]) {
          @Override
          public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
            throw new IllegalStateException("not connected");
          }
        };
    try (KeptTransport other = over(broken)) {
      final Results results = new Results();
      other.fetch(source(0), List.of(block(0)), results);
      assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
    }
  }

  /** The choice of a path has looked at it before, for as long as it may say nothing. */
  @Test
  void anOwnerThatSaysNothingIsLookedAtOnce() throws Exception {
    left.put(SOCKET, blocks());
    final AtomicInteger looks = new AtomicInteger();
    final FakeStaging silent =
        new FakeStaging(block -> new byte[0]) {
          @Override
          public boolean answers(final BlockSource source, final Duration limit) {
            looks.incrementAndGet();
            return false;
          }
        };
    try (KeptTransport other = over(silent)) {
      final Results results = new Results();
      final BlockSource source = source(0);
      assertThat(other.answers(source, LIMIT)).isFalse();
      other.fetch(source, source.blocks(), results);
      assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
    }
    assertThat(looks).hasValue(1);
  }

  /** It answers at the next try, and its keeper knows that it lives. */
  @Test
  void anOwnerThatSaidNothingOnceIsAskedAgain() throws Exception {
    final AtomicInteger looks = new AtomicInteger();
    final FakeStaging paused =
        new FakeStaging(block -> new byte[] {42}) {
          @Override
          public boolean answers(final BlockSource source, final Duration limit) {
            return looks.getAndIncrement() > 0;
          }
        };
    try (KeptTransport other = over(paused)) {
      final BlockSource source = source(0);
      final Results first = new Results();
      other.fetch(source, source.blocks(), first);
      TestNodes.eventually(
          "the keeper says that the owner has left nothing",
          () -> {
            clock.advance(Duration.ofSeconds(11));
            keeper.round();
            return first.of(block(0)).isDone();
          });
      assertThat(first.of(block(0))).isCompletedExceptionally();
      final Results second = new Results();
      other.fetch(source, source.blocks(), second);
      assertThat(second.bytes(0)).containsExactly(42);
    }
  }

  /** Two threads connect; what waits for one of them has a result, too. */
  @Test
  void whatWaitsForAThreadFailsAtTheEnd() throws Exception {
    final Semaphore connecting = new Semaphore(0);
    final Set<Long> seen = ConcurrentHashMap.newKeySet();
    final FakeStaging dying =
        new FakeStaging(block -> new byte[0]) {
          @Override
          public boolean answers(final BlockSource source, final Duration limit) {
            return seen.add(source.knownLocation().incarnation());
          }

          @Override
          public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
            sink.failed(blocks, new IOException("it was killed"));
          }
        };
    final List<Results> all = new ArrayList<>();
    try (KeptTransport other =
        over(
            dying,
            () ->
                new Unreachable() {
                  @Override
                  public ControlLink connect(
                      final String host, final int port, final Duration limit) {
                    connecting.release();
                    try {
                      new CountDownLatch(1).await();
                    } catch (final InterruptedException e) {
                      Thread.currentThread().interrupt();
                    }
                    throw new ExchangeException(ExchangeException.Reason.TIMEOUT, "interrupted");
                  }
                })) {
      for (int owner = 0; owner < 5; owner++) {
        final Location location =
            new Location("01234567", "0123456789abcdef", owner, 0, SOCKET).withKeeper(1);
        final Results results = new Results();
        final List<Block> blocks = List.of(block(0), block(1));
        other.fetch(
            new BlockSource("" + owner, location, "host" + owner, "address", blocks, true),
            blocks,
            results);
        all.add(results);
      }
      assertThat(connecting.tryAcquire(2, 30, TimeUnit.SECONDS)).isTrue();
    }
    TestNodes.eventually(
        "each has a result",
        () ->
            all.stream()
                .allMatch(
                    results ->
                        results.of(block(0)).isCompletedExceptionally()
                            && results.of(block(1)).isCompletedExceptionally()));
  }

  private KeptTransport over(final FakeStaging owners) {
    return over(owners, () -> channels.open(null));
  }

  private static KeptTransport over(
      final FakeStaging owners, final Supplier<ControlChannel> channels) {
    return new KeptTransport(
        owners, source -> false, channels, source -> {}, LIMIT, Clock.system());
  }

  private abstract static class Unreachable implements ControlChannel {
    @Override
    public int port() {
      return 0;
    }

    @Override
    public long strangers() {
      return 0;
    }

    @Override
    public void close() {}
  }

  /** Tasks that were killed while they waited say nothing, and others use the link for long. */
  @Test
  void answersThatWereLostBlockALinkForAWhileOnly() {
    left.put(SOCKET, blocks());
    final TestClock still = TestClock.standing();
    final FarReads far = new FarReads(left::get, still, () -> {});
    for (int i = 0; i < 4; i++) {
      far.asked(1, KeptWire.Read.of(SOCKET, 1, 0, List.of(block(2))), answer -> {});
    }
    int busy = 0;
    for (int i = 0; i < 20; i++) {
      final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      far.asked(1, KeptWire.Read.of(SOCKET, 1, 0, List.of(block(0))), answer::complete);
      still.advance(Duration.ofSeconds(11));
      far.round();
      if (KeptWire.isBusy(answer.join())) {
        busy++;
      }
    }
    assertThat(busy).isBetween(1, 3);
  }

  /** One that asks and never takes fills the keeper's memory no further than to the limit. */
  @Test
  void answersThatNobodyTakesAreLimited() {
    left.put(SOCKET, blocks());
    final List<CompletableFuture<ByteBuffer>> answers = new ArrayList<>();
    final ControlLink greedy = channels.open(null).connect("host", answering.port(), LIMIT);
    try (ControlLink modest = channels.open(null).connect("host", answering.port(), LIMIT)) {
      for (int i = 0; i < 100; i++) {
        answers.add(greedy.ask(KeptWire.Read.of(SOCKET, 1, 0, List.of(block(2)))));
      }
      assertThat(answers.stream().filter(CompletableFuture::isDone).count()).isEqualTo(4);
      assertThat(modest.ask(KeptWire.Read.of(SOCKET, 1, 0, List.of(block(0))))).isDone();
      final List<ControlLink> many = new ArrayList<>();
      final List<CompletableFuture<ByteBuffer>> all = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        final ControlLink link = channels.open(null).connect("host", answering.port(), LIMIT);
        many.add(link);
        all.add(link.ask(KeptWire.Read.of(SOCKET, 1, 0, List.of(block(2)))));
      }
      assertThat(all.stream().filter(CompletableFuture::isDone).count()).isLessThan(16);
      greedy.close();
      many.get(0).close();
      keeper.round();
      assertThat(all.get(19)).isNotDone();
      many.forEach(ControlLink::close);
      final List<CompletableFuture<ByteBuffer>> waiting = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        waiting.add(modest.ask(KeptWire.Read.of("2-0000000000000008", 1, 0, List.of(block(0)))));
      }
      assertThat(waiting).noneMatch(CompletableFuture::isDone);
      clock.advance(Duration.ofSeconds(1));
      keeper.round();
      assertThat(waiting.stream().filter(CompletableFuture::isDone))
          .as("beyond those that may wait")
          .hasSize(1000 - 256)
          .allMatch(answer -> KeptWire.isBusy(answer.join()));
    }
    assertThat(answers.get(99)).isCompletedExceptionally();
  }

  /** Questions are limited by what they ask for, too: that is what takes the keeper's heap. */
  @Test
  void blocksOfQuestionsThatWaitAreLimited() {
    final TestClock still = TestClock.standing();
    final FarReads far = new FarReads(left::get, still, () -> {});
    final List<Block> many = Collections.nCopies(KeptWire.MAX_BLOCKS, block(0));
    final List<CompletableFuture<ByteBuffer>> answers = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      answers.add(answer);
      far.asked(i, KeptWire.Read.of(SOCKET, 1, 0, many), answer::complete);
    }
    still.advance(Duration.ofSeconds(1));
    far.round();
    assertThat(answers.stream().filter(CompletableFuture::isDone))
        .hasSize(100 - 200_000 / KeptWire.MAX_BLOCKS)
        .allMatch(answer -> KeptWire.isBusy(answer.join()));
    for (int i = 0; i < 100; i++) {
      far.disconnected(i);
    }
    final CompletableFuture<ByteBuffer> next = new CompletableFuture<>();
    far.asked(1, KeptWire.Read.of(SOCKET, 1, 0, many), next::complete);
    still.advance(Duration.ofSeconds(1));
    far.round();
    assertThat(next).as("there is room again").isNotDone();
    final List<CompletableFuture<ByteBuffer>> ofOne = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      ofOne.add(answer);
      far.asked(2, KeptWire.Read.of(SOCKET, 1, 0, many), answer::complete);
    }
    still.advance(Duration.ofSeconds(1));
    far.round();
    assertThat(ofOne.stream().filter(CompletableFuture::isDone))
        .as("one link leaves room to others")
        .hasSize(20 - 50_000 / KeptWire.MAX_BLOCKS);
  }

  /** So much a keeper's channel takes. */
  @Test
  void theLargestQuestionHas64KiBAtMost() {
    final List<Block> most = Collections.nCopies(KeptWire.MAX_BLOCKS, block(0));
    assertThat(KeptWire.Read.of("x".repeat(64), 1, 0, most).remaining())
        .isLessThanOrEqualTo(64 << 10);
  }

  @Test
  void aPlaceBehindTheEndOfABlockIsNotThere() {
    left.put(SOCKET, blocks());
    try (ControlLink link = channels.open(null).connect("host", answering.port(), LIMIT)) {
      for (final long from : new long[] {11, 1L << 31, (3L << 30) + 7, (1L << 32) + 3}) {
        final ByteBuffer answer =
            link.ask(KeptWire.Read.of(SOCKET, 1, from, List.of(block(0)))).join();
        assertThat(answer.get()).isEqualTo(KeptWire.FOUND);
        assertThat(KeptWire.Item.parse(answer).total()).isNegative();
      }
    }
  }

  /** One that cannot be answered, and another one behind it. */
  @Test
  void aQuestionThatFailsTakesNoOtherAlong() {
    final CompletableFuture<ByteBuffer> bad = new CompletableFuture<>();
    final CompletableFuture<ByteBuffer> good = new CompletableFuture<>();
    keeper.asked(1, KeptWire.Read.of(SOCKET, 7, 0, List.of(block(0))), bad::complete);
    keeper.asked(2, KeptWire.Read.of(SOCKET, 1, 0, List.of(block(0))), good::complete);
    final LeftBlocks real = blocks();
    left.put(
        SOCKET,
        new LeftBlocks() {
          @Override
          public boolean isInFile(final int shuffleId) {
            return false;
          }

          @Override
          public boolean isBeingCopied(final int shuffleId) {
            return false;
          }

          @Override
          public long bytes(final int shuffleId, final long mapId, final int partition) {
            if (shuffleId == 7) {
              throw new IndexOutOfBoundsException("a bug");
            }
            return real.bytes(shuffleId, mapId, partition);
          }

          @Override
          public boolean read(
              final int shuffleId,
              final long mapId,
              final int partition,
              final long from,
              final ByteBuffer to) {
            return real.read(shuffleId, mapId, partition, from, to);
          }
        });
    keeper.round();
    assertThat(bad.join().get()).isEqualTo(KeptWire.NOT_LEFT);
    assertThat(good.join().get()).isEqualTo(KeptWire.FOUND);
  }

  @Test
  void aBusyKeeperIsAskedAgain() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    final List<ControlLink> greedy = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      final ControlLink link = channels.open(null).connect("host", answering.port(), LIMIT);
      greedy.add(link);
      link.ask(KeptWire.Read.of(SOCKET, 1, 0, List.of(block(2))));
    }
    final Results results = fetch(0);
    keeper.round();
    clock.advance(Duration.ofSeconds(11));
    keeper.round();
    assertThat(results.of(block(0))).isNotDone();
    greedy.forEach(ControlLink::close);
    keeper.round();
    assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
  }

  /** Each task asks for itself, and they have one link. */
  @Test
  void moreQuestionsThanMayWaitAreAskedAgain() throws Exception {
    owners.desert();
    final ExecutorService thread = Executors.newSingleThreadExecutor();
    network = thread;
    try {
      final List<Results> all = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        all.add(fetch(0));
      }
      left.put(SOCKET, blocks());
      TestNodes.eventually(
          "all have a result",
          () -> {
            clock.advance(Duration.ofSeconds(1));
            keeper.round();
            return all.stream().allMatch(results -> results.of(block(0)).isDone());
          });
      for (final Results results : all) {
        assertThat(results.bytes(0)).isEqualTo(bytesOf(0));
      }
    } finally {
      thread.shutdown();
    }
  }

  /** A task that is killed, and a keeper that says nothing. */
  @Test
  void aWaitForTheRestOfABlockEndsWithItsTask() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    final BlockSource source = source(2);
    final AtomicBoolean killed = new AtomicBoolean();
    final Fetches fetches = Fetches.stagedOnly(Config.defaults(), LIMIT, Clock.system());
    try (Fetch fetch =
        fetches.begin(List.of(source), transport, TestNodes.quiet(), ReadSide.HOST, killed::get)) {
      assertThat(fetch.next()).isTrue();
      left.clear();
      try (InputStream in = fetch.block().stream()) {
        final CompletableFuture<byte[]> read =
            CompletableFuture.supplyAsync(
                () -> {
                  try {
                    return in.readAllBytes();
                  } catch (final IOException e) {
                    throw new UncheckedIOException(e);
                  }
                });
        assertThatThrownBy(() -> read.get(300, TimeUnit.MILLISECONDS))
            .isInstanceOf(TimeoutException.class);
        killed.set(true);
        assertThat(read)
            .failsWithin(Duration.ofSeconds(10))
            .withThrowableThat()
            .withCauseInstanceOf(WaitException.class);
      }
    }
  }

  @Test
  void theNextPartIsAskedForWhileOneIsRead() throws Exception {
    left.put(SOCKET, blocks());
    owners.desert();
    final AtomicInteger reads = new AtomicInteger();
    channels.onQuestion =
        question -> reads.addAndGet(KeptWire.kind(question) == KeptWire.READ ? 1 : 0);
    final Transport.Payload payload = fetch(2).of(block(2)).get(30, TimeUnit.SECONDS);
    try (InputStream in = payload.open(() -> false)) {
      assertThat(in.read()).isEqualTo(bytesOf(2)[0] & 0xff);
      assertThat(reads).as("the first part and the next").hasValue(2);
      in.readNBytes(KeptWire.MAX_ANSWER);
      assertThat(reads).as("one more").hasValue(3);
    }
    payload.release();
  }

  private static byte[] question(final Random random) {
    final List<Block> blocks = new ArrayList<>();
    for (int i = random.nextInt(9); i >= 0; i--) {
      blocks.add(new Block(1, random.nextLong(), 0, random.nextInt(), 1));
    }
    return KeptWire.Read.of(SOCKET, random.nextInt(), random.nextInt(99), blocks).array();
  }

  static Stream<Arguments> seeds() {
    return Fuzz.seeds(KeptTransportTest::question);
  }

  @MethodSource("seeds")
  @FuzzTest
  void questions(final byte[] bytes) {
    final FarReads asked = new FarReads(socket -> blocks(), TestClock.standing(), () -> {});
    try {
      asked.asked(
          1,
          ByteBuffer.wrap(bytes),
          answer -> assertThat(answer.remaining()).isLessThanOrEqualTo(KeptWire.MAX_ANSWER));
    } catch (final IllegalArgumentException e) {
      assertThat(e).hasMessageContaining("keeper");
    }
  }
}
