package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.PortCarrier.KnownNeighbours;
import io.zerohop.spark.sent.PortCarrier.KnownNeighbours.TooSoonException;
import io.zerohop.spark.sent.Uploads.ArrivingWord;
import io.zerohop.spark.sent.Uploads.Reply;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/**
 * Somebody who reaches the block ports where Spark wants no proof: what he gets others to do has
 * limits, and nobody's blocks suffer by it.
 */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentStrangersTest {
  private static final int LINK = 7;
  private static final Duration LIMIT = Duration.ofSeconds(5);

  /** Blocks that one request can name. */
  private static final int MAX_BLOCKS_OF_A_REQUEST = ServedLinks.MAX_QUESTION_BYTES / 12 - 100;

  /** Of a request that an owner grants: some dozens fill its room, however large its heap is. */
  private static final int WINDOW_BLOCKS = 100_000;

  /**
   * From so many blocks on the answer with a lease is longer than a refusal. That with a lease on
   * one block is shorter.
   */
  private static final int MIN_LONG = 12;

  /** Longer than a word may take. */
  private static final Duration LONGEST = Duration.ofMinutes(6);

  @TempDir private java.nio.file.Path folder;
  private final Random random = new Random(5);
  private SentNodes nodes;
  private SentNodes.Member owner;
  private SentNodes.Member reader;
  private Connections connections;
  private Connection toOwner;
  private Connection toReader;

  @BeforeEach
  void start() throws IOException {
    nodes = new SentNodes(folder, Map.of());
    owner = nodes.start("owner", config -> config.set("fetch.window.blocks", WINDOW_BLOCKS));
    reader = nodes.start("reader");
    nodes.write();
    connections = new Connections(owner.port().conf(), owner.port().security(), LIMIT);
    toOwner = connect(owner.port().port());
    toReader = connect(reader.port().port());
  }

  private Connection connect(final int port) {
    return connections.connect(BlockPort.HOST, port, LIMIT);
  }

  @AfterEach
  void nothingIsHeld() throws IOException {
    connections.end();
    nodes.close();
  }

  private static Reply upload(final Connection by, final UploadId id, final byte[] body)
      throws Exception {
    return uploading(by, id, body).get(20, TimeUnit.SECONDS);
  }

  private static CompletableFuture<Reply> uploading(
      final Connection by, final UploadId id, final byte[] body) {
    final CompletableFuture<Reply> end = new CompletableFuture<>();
    by.upload(
        id,
        ByteBuffer.wrap(body),
        (reply, failure) -> {
          if (failure == null) {
            end.complete(reply);
          } else {
            end.completeExceptionally(failure);
          }
        });
    return end;
  }

  /** A question, or a farewell, in somebody's name. */
  private static Reply say(
      final Connection by, final int type, final String name, final int number, final ByteBuffer it)
      throws Exception {
    final ByteBuffer body = ArrivingWord.body(name, it);
    final byte[] bytes = new byte[body.remaining()];
    body.get(bytes);
    return upload(by, UploadId.word(type, LINK, number, bytes.length), bytes);
  }

  private static Reply ask(
      final Connection by, final String name, final int number, final ByteBuffer it)
      throws Exception {
    return say(by, UploadId.QUESTION, name, number, it);
  }

  /** Whatever a stranger uploads, the connection stands, nothing is sent, and all of it counts. */
  @Test
  void whatNobodyWaitsForIsDrainedAndCounted() throws Exception {
    final long before = owner.stats().peers().strangers();
    final int uploads = 200;
    for (int i = 0; i < uploads; i++) {
      final int bytes = 1 + random.nextInt(100_000);
      final UploadId id =
          switch (i % 3) {
            case 0 -> UploadId.message(random.nextLong(), 0, bytes, random.nextInt());
            case 1 -> UploadId.word(UploadId.ANSWER, random.nextLong() >>> 1, i, bytes);
            default -> UploadId.word(UploadId.ECHO, random.nextLong() >>> 1, 0, bytes);
          };
      assertThat(upload(toOwner, id, new byte[bytes])).isEqualTo(Reply.DROPPED);
    }
    assertThat(toOwner.alive()).isTrue();
    assertThat(owner.stats().peers().strangers() - before).isEqualTo(uploads);
    assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
  }

  /** Uploads that are longer or shorter than they say touch nothing beyond. */
  @Test
  void uploadsThatLieAboutTheirLengthAreDropped() throws Exception {
    for (final int more : new int[] {-5, 5, 50_000}) {
      final UploadId id = UploadId.word(UploadId.QUESTION, LINK, 0, 1_000);
      assertThat(upload(toOwner, id, new byte[1_000 + more])).isEqualTo(Reply.DROPPED);
    }
    assertThat(toOwner.alive()).isTrue();
  }

  @Test
  void roomThatIsAskedForAndNotFilledIsGivenBack() throws Exception {
    for (int i = 0; i < 50; i++) {
      for (final int said : new int[] {Integer.MAX_VALUE, ServedLinks.MAX_QUESTION_BYTES}) {
        for (final int type : new int[] {UploadId.QUESTION, UploadId.BYE, UploadId.ANSWER}) {
          assertThat(upload(toOwner, UploadId.word(type, LINK, 0, said), new byte[10]))
              .isEqualTo(Reply.DROPPED);
        }
      }
    }
    assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
  }

  /** Questions that never end take the room of those that do, for a time. */
  @Test
  void questionsThatNeverEndAreGivenUp() throws Exception {
    try (UnendedQuestions unended = new UnendedQuestions()) {
      owner.clock().advance(LONGEST);
      awaitReply("there is room again", Reply.TAKEN);
      assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
      unended.release();
      for (final CompletableFuture<Reply> each : unended.uploads) {
        assertThat(each.get(20, TimeUnit.SECONDS)).isEqualTo(Reply.DROPPED);
      }
    }
  }

  @Test
  void questionsThatNeverEndEndWithTheirConnections() throws Exception {
    try (UnendedQuestions unended = new UnendedQuestions()) {
      unended.slow.closeAll();
      unended.release();
      for (final CompletableFuture<Reply> each : unended.uploads) {
        assertThatThrownBy(() -> each.get(20, TimeUnit.SECONDS))
            .hasCauseInstanceOf(IOException.class);
      }
    }
    awaitReply("there is room again", Reply.TAKEN);
    assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
  }

  /** As many as there is room for have begun, and do not go on. */
  private final class UnendedQuestions implements AutoCloseable {
    private static final int FILL = 4;

    private final CountDownLatch over = new CountDownLatch(1);
    private final List<CompletableFuture<Reply>> uploads = new ArrayList<>();
    private final PortProxy slow = new PortProxy(owner.port().port());

    UnendedQuestions() throws Exception {
      final AtomicInteger begun = new AtomicInteger();
      slow.hear(
          new PortProxy.Ear() {
            @Override
            public void begins(final UploadId id) throws IOException {
              begun.incrementAndGet();
              await(over);
            }
          });
      final byte[] body = new byte[ServedLinks.MAX_QUESTION_BYTES];
      final UploadId id = UploadId.word(UploadId.QUESTION, LINK, 0, body.length);
      // A ping that the owner reads before the last of them takes its place: then one more comes.
      while (uploads.size() < FILL
          || ask(toOwner, "nobody", 0, Questions.ping()) != Reply.DROPPED) {
        assertThat(uploads).as("there is no room for another one").hasSizeLessThan(3 * FILL);
        uploads.add(uploading(connect(slow.port()), id, body));
        TestNodes.eventually("it begins", () -> begun.get() == uploads.size());
        Thread.sleep(20); // Mostly the owner has read that by now.
      }
    }

    /** They go on. */
    void release() {
      over.countDown();
    }

    @Override
    public void close() throws IOException {
      release();
      slow.close();
    }
  }

  private void awaitReply(final String what, final Reply reply) {
    TestNodes.eventually(
        what,
        () -> {
          try {
            return ask(toOwner, "nobody", 0, Questions.ping()) == reply;
          } catch (final Exception e) {
            throw new AssertionError(e);
          }
        });
  }

  /** Bytes go to executors that the driver lists, and to nobody else. */
  @Test
  void whoIsNotListedGetsNoAnswer() throws Exception {
    final int before = owner.looks();
    for (int i = 0; i < 50; i++) {
      final String name = "stranger-" + i;
      assertThat(
              ask(toOwner, name, 0, Questions.hello(name.getBytes(StandardCharsets.UTF_8), false)))
          .isEqualTo(Reply.TAKEN);
      assertThat(ask(toOwner, name, 1, Questions.open(nodes.source().blocks())))
          .isEqualTo(Reply.TAKEN);
    }
    assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
    assertThat(owner.stats().peers().readers()).as("the reader alone").isEqualTo(1);
    assertThat(owner.looks() - before).as("the driver is asked once a second").isLessThan(10);
  }

  @Test
  void namesThatAreMadeUpCostTheDriverAQuestionASecondAndHideNobody() {
    final AtomicInteger asked = new AtomicInteger();
    final TestClock clock = TestClock.standing();
    final KnownNeighbours neighbours =
        new KnownNeighbours(
            () -> {
              asked.incrementAndGet();
              return List.of(reader.port().address());
            },
            clock);
    for (int i = 0; i < 50; i++) {
      final String name = "stranger-" + i;
      assertThatThrownBy(() -> neighbours.find(name)).isInstanceOf(CarrierException.class);
    }
    assertThat(neighbours.find("reader")).isEqualTo(reader.port().address());
    assertThat(asked).hasValue(1);
    clock.advance(Duration.ofSeconds(1));
    assertThatThrownBy(() -> neighbours.find("stranger")).isInstanceOf(CarrierException.class);
    assertThat(asked).hasValue(2);
    neighbours.forget("reader");
    assertThat(neighbours.find("reader")).as("asked for anew").isEqualTo(reader.port().address());
    assertThat(asked).hasValue(3);
  }

  /** As with dynamic allocation: neither has to wait because the other one came. */
  @Test
  void executorsThatStartOneAfterTheOtherAreFoundAtOnce() {
    final List<BlockManagerId> listed = new ArrayList<>();
    final KnownNeighbours neighbours = new KnownNeighbours(() -> listed, TestClock.standing());
    for (int i = 0; i < 5; i++) {
      final BlockManagerId started =
          BlockManagerId.apply("late-" + i, BlockPort.HOST, 1 + i, Option.empty());
      listed.add(started);
      assertThat(neighbours.find("late-" + i)).isEqualTo(started);
    }
  }

  @Test
  void anExecutorThatRegistersBehindAnInventedNameIsFoundASecondLater() {
    final List<BlockManagerId> listed = new ArrayList<>();
    final TestClock clock = TestClock.standing();
    final KnownNeighbours neighbours = new KnownNeighbours(() -> listed, clock);
    assertThatThrownBy(() -> neighbours.find("stranger"))
        .isInstanceOf(CarrierException.class)
        .isNotInstanceOf(TooSoonException.class);
    final BlockManagerId late = BlockManagerId.apply("late", BlockPort.HOST, 1, Option.empty());
    listed.add(late);
    final TooSoonException refused =
        catchThrowableOfType(TooSoonException.class, () -> neighbours.find("late"));
    clock.advance(Duration.ofNanos(clock.left(refused.until())));
    assertThat(neighbours.find("late")).isEqualTo(late);
  }

  /** In the name of a reader that is listed, but not by its link. */
  @Test
  void leasesOfOthersAreNobodysToUse() throws Exception {
    final Queue<UploadId> messages = new ConcurrentLinkedQueue<>();
    final Map<BlockPath, Integer> paths =
        readWhile(
            messages,
            () -> {
              for (int lease = 0; lease < 20; lease++) {
                ask(toOwner, "reader", 1, Questions.send(lease, random.nextLong()));
                ask(toOwner, "reader", 1, Questions.close(lease));
              }
              say(toOwner, UploadId.BYE, "reader", 0, ByteBuffer.allocate(0));
            });
    assertThat(paths).containsOnlyKeys(BlockPath.SENT);
    // How many messages there are depends on what is ready when one is filled, and how many of them
    // are compressed on how fast they go; what they carry does not.
    final Queue<UploadId> alone = new ConcurrentLinkedQueue<>();
    assertThat(readWhile(alone, () -> {})).containsOnlyKeys(BlockPath.SENT);
    assertThat(bytes(messages)).as("nothing was sent twice").isEqualTo(bytes(alone));
  }

  /** Nobody reads under them, so nobody ends them. */
  @Test
  void leasesThatAStrangerTakesInAReadersNameEndByThemselves() throws Exception {
    final int leases = 30;
    for (int i = 0; i < leases; i++) {
      ask(toOwner, "reader", 1 + i, Questions.open(nodes.source().blocks()));
    }
    TestNodes.eventually("they are held", () -> owner.stats().leases().open() == leases);
    assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
    owner.clock().advance(Duration.ofMinutes(6));
    TestNodes.eventually(
        "they end after five minutes, and what is left of them ten seconds later",
        () -> {
          owner.clock().advance(Duration.ofSeconds(1));
          return owner.stats().leases().open() == 0;
        });
  }

  /** So many that lists of them would fill the heap; a reader asks for a window. */
  @Test
  void aRequestForMoreBlocksThanAWindowHasIsRefused() throws Exception {
    assertThat(new Leases().isRefused(MAX_BLOCKS_OF_A_REQUEST)).isTrue();
    assertThat(owner.stats().leases().open()).isZero();
    assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
  }

  @Test
  void leasesOfAllReadersTogetherHaveALimit() throws Exception {
    final Leases leases = new Leases();
    int blocks = WINDOW_BLOCKS; // Of a request; in the end there is not even room for one.
    while (blocks > 0) {
      if (leases.isRefused(blocks)) {
        blocks = blocks > MIN_LONG ? blocks / 2 : blocks / MIN_LONG;
      }
    }
    assertThat(reader.read()).containsOnlyKeys(BlockPath.STAGED);
    owner.clock().advance(Duration.ofMinutes(6));
    TestNodes.eventually(
        "they end",
        () -> {
          owner.clock().advance(Duration.ofSeconds(1));
          return owner.stats().leases().open() == 0;
        });
    assertThat(reader.read()).containsOnlyKeys(BlockPath.SENT);
  }

  /** Asks for leases in the reader's name, and hears how long the answers are. */
  private final class Leases implements PortProxy.Ear {
    private final Map<Integer, Integer> answers = new ConcurrentHashMap<>();
    private int asked;

    Leases() {
      reader.proxy().hear(this);
    }

    @Override
    public void begins(final UploadId id) {
      if (id.kind() == UploadId.WORD && id.type() == UploadId.ANSWER && id.number() == LINK) {
        answers.put(id.place(), id.length());
      }
    }

    /** Asks for one block so many times; says whether that is refused. */
    boolean isRefused(final int times) throws Exception {
      asked++;
      final List<Block> blocks = Collections.nCopies(times, nodes.source().blocks().get(0));
      assertThat(ask(toOwner, "reader", asked, Questions.open(blocks))).isEqualTo(Reply.TAKEN);
      TestNodes.eventually("it is answered", () -> answers.containsKey(asked));
      return answers.get(asked) != bytesOfLease(times);
    }

    /** Of the answer, with the sum behind it: each block is in one piece. */
    private static int bytesOfLease(final int blocks) {
      final RemoteExtents extents = new RemoteExtents();
      for (int i = 0; i < blocks; i++) {
        extents.add(1, 0, 1, true, 0);
        extents.endBlock();
      }
      return ArrivingWord.body(Wire.granted(Long.BYTES + extents.encodedBytes()).clear())
          .remaining();
    }
  }

  @Test
  void answersAndMessagesThatNobodyAskedForDisturbNoTransfer() throws Exception {
    final long before = reader.stats().peers().strangers();
    final int rounds = 40;
    final Map<BlockPath, Integer> paths =
        readWhile(
            new ConcurrentLinkedQueue<>(),
            () -> {
              for (int i = 0; i < rounds; i++) {
                final long any = random.nextLong();
                assertThat(upload(toReader, UploadId.message(any, 0, 100, 0), new byte[100]))
                    .isEqualTo(Reply.DROPPED);
                final UploadId answer = UploadId.word(UploadId.ANSWER, any >>> 1, i % 4, 100);
                assertThat(upload(toReader, answer, new byte[100])).isEqualTo(Reply.DROPPED);
                final ByteBuffer nothing = ArrivingWord.body(ByteBuffer.allocate(0));
                upload(
                    toReader,
                    UploadId.word(UploadId.LOST, any >>> 1, i % 2, nothing.remaining()),
                    nothing.array());
              }
            });
    assertThat(paths).containsOnlyKeys(BlockPath.SENT);
    assertThat(reader.stats().peers().strangers() - before).isEqualTo(2 * rounds);
  }

  private static long bytes(final Queue<UploadId> messages) {
    return messages.stream().mapToLong(UploadId::expanded).sum();
  }

  private interface Mischief {
    void run() throws Exception;
  }

  /** Reads all blocks, and does something while messages are on their way. */
  private Map<BlockPath, Integer> readWhile(final Queue<UploadId> messages, final Mischief mischief)
      throws Exception {
    final AtomicInteger begins = new AtomicInteger();
    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch goesOn = new CountDownLatch(1);
    reader
        .proxy()
        .hear(
            new PortProxy.Ear() {
              @Override
              public void begins(final UploadId id) throws IOException {
                if (id.kind() == UploadId.WORD) {
                  return;
                }
                messages.add(id);
                if (begins.incrementAndGet() == 3) {
                  begun.countDown();
                  await(goesOn);
                }
              }
            });
    final CompletableFuture<Map<BlockPath, Integer>> reading =
        CompletableFuture.supplyAsync(reader::read);
    assertThat(begun.await(30, TimeUnit.SECONDS)).isTrue();
    try {
      mischief.run();
    } finally {
      goesOn.countDown();
    }
    return reading.get(30, TimeUnit.SECONDS);
  }

  private static void await(final CountDownLatch latch) throws IOException {
    try {
      latch.await(30, TimeUnit.SECONDS);
    } catch (final InterruptedException e) {
      throw new IOException(e);
    }
  }
}
