package io.zerohop.spark.blocktransfer.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.contract.ServedBlocks;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a network, a leaving executor or a stranger does to blocks that are sent. */
@Timeout(120)
class SentFaultsTest {
  private static final String NETWORK = "org.apache.spark.network";
  private static final int MAPS = 4;
  private static final int PARTITIONS = 5;
  private static final int MOST = 1 << 20;

  /** To a reader that asks nothing meanwhile: for its answers, and for what it is told. */
  private static final int MOST_ATTEMPTS = 4;

  @TempDir private java.nio.file.Path folder;
  private final Map<String, BlockPort> ports = new ConcurrentHashMap<>();
  private final ServedBlocks staged = new ServedBlocks();
  private final TestClock clockOfOwner = TestClock.running();
  private PortProxy toReader;
  private ShuffleNode owner;
  private ShuffleNode reader;

  @BeforeAll
  static void quiet() {
    Configurator.setLevel(NETWORK, Level.OFF);
  }

  @AfterAll
  static void loud() {
    Configurator.setLevel(NETWORK, Level.INFO);
  }

  @BeforeEach
  void start() throws Exception {
    owner = startNode("owner", clockOfOwner);
    reader = startNode("reader", Clock.system());
    toReader = new PortProxy(ports.get("reader").port());
    ports.get("reader").behind(toReader.port());
    staged.serve("owner", owner);
    for (int map = 0; map < MAPS; map++) {
      TestBlocks.write(owner, 1, map, 1, PARTITIONS, MOST);
    }
  }

  private ShuffleNode startNode(final String executor, final Clock clock) {
    final BlockPort port = new BlockPort(executor, Map.of());
    ports.put(executor, port);
    return ShuffleNode.start(
        TestNodes.config(folder.resolve("s"), executor)
            .nodeId("node-" + executor)
            .requestLimit(Duration.ofSeconds(4))
            .connectLimit(Duration.ofSeconds(2))
            .clock(clock)
            .carrier(port.carrier(this::find))
            .build());
  }

  private BlockManagerId find(final String executorId) {
    final BlockPort port = ports.get(executorId);
    return port == null ? null : port.address();
  }

  @AfterEach
  @SuppressWarnings("try") // A flight is there to be closed.
  void nothingIsHeld() throws Exception {
    toReader.pause(false);
    owner.unregisterShuffle(1);
    reader.close();
    try (TestClock.Flight tenSeconds = clockOfOwner.fly()) { // What is left behind stays so long.
      TestNodes.assertNothingHeld(owner);
    }
    owner.close();
    staged.close();
    toReader.close();
    ports.values().forEach(BlockPort::close);
  }

  private BlockSource source() {
    return new BlockSource(
        "owner",
        owner.location(),
        find("owner"),
        TestBlocks.source("owner", owner.location(), 1, 0, MAPS, 1, PARTITIONS, MOST).blocks());
  }

  private Map<Path, Integer> read() {
    return TestNodes.fetchAndCheck(reader, staged, 1, MOST, source());
  }

  @Test
  void blocksThatWereDamagedOnTheWayAreSentOnceMore() {
    toReader.flip(1);
    assertThat(read()).containsOnlyKeys(Path.SENT);
  }

  @Test
  void whatIsDamagedTwiceIsStaged() {
    toReader.flip(Integer.MAX_VALUE);
    final Map<Path, Integer> paths = read();
    assertThat(paths).containsKey(Path.STAGED);
  }

  @Test
  void aConnectionThatBreaksInAMessageIsMadeAnew() {
    toReader.resetAfter(MOST);
    assertThat(read().values().stream().mapToInt(Integer::intValue).sum())
        .isEqualTo(source().blocks().size());
    assertThat(toReader.hasReset()).isTrue();
    assertThat(reader.stats().moved(Path.SENT).blocks()).isPositive();
  }

  @Test
  void whoClosesEachConnectionIsNotConnectedWithoutEnd() throws Exception {
    assertThat(read()).containsOnlyKeys(Path.SENT);
    toReader.closeAll();
    assertThat(
            Deadline.in(Duration.ofSeconds(10))
                .await(() -> toReader.closedAtOnce() > 0, Thread::sleep))
        .as("it is tried once more")
        .isTrue();
    assertThat(
            Deadline.in(Duration.ofSeconds(1))
                .await(() -> toReader.closedAtOnce() > MOST_ATTEMPTS, Thread::sleep))
        .as("more often than the reader has asked")
        .isFalse();
  }

  @Test
  void whatNothingIsHeardOfIsStaged() {
    assertThat(read()).containsOnlyKeys(Path.SENT);
    toReader.pause(true);
    assertThat(read()).as("after half of the request's limit").containsKey(Path.STAGED);
  }

  @Test
  void blocksOfAnOwnerThatLeavesAreStaged() {
    ports.get("owner").leave();
    assertThat(read()).containsOnlyKeys(Path.STAGED);
  }

  @Test
  void aReaderThatLeavesHasBlocksStaged() {
    ports.get("reader").leave();
    assertThat(read()).containsOnlyKeys(Path.STAGED);
  }

  @Test
  void anOwnerThatDoesNotSendIsStaged() {
    final BlockSource old = source();
    final var location = owner.location();
    final BlockSource silent =
        new BlockSource(
            old.executorId(),
            new io.zerohop.shuffle.block.Location(
                location.bootId(),
                location.folderId(),
                location.incarnation(),
                0,
                location.socket()),
            old.address(),
            old.blocks());
    assertThat(TestNodes.fetchAndCheck(reader, staged, 1, MOST, silent))
        .containsOnlyKeys(Path.STAGED);
  }

  /** Whatever a stranger uploads, the connection stands, nothing is sent, and all of it counts. */
  @Test
  void whatStrangersUploadIsDrainedAndCounted() throws Exception {
    final BlockPort port = ports.get("owner");
    final Random random = new Random(5);
    try (Connections connections = new Connections(port.conf(), port.security())) {
      final Connection connection =
          connections.connect(BlockPort.HOST, port.port(), Duration.ofSeconds(5));
      final long before = owner.stats().peers().strangers();
      int drained = 0;
      for (int i = 0; i < 200; i++) {
        final int bytes = 1 + random.nextInt(100_000);
        final UploadId id =
            switch (i % 3) {
              case 0 -> UploadId.message(random.nextLong(), 0, bytes, random.nextInt());
              case 1 -> UploadId.word(UploadId.ANSWER, random.nextLong() >>> 1, i, bytes);
              default -> UploadId.word(UploadId.ECHO, random.nextLong() >>> 1, 0, bytes);
            };
        assertThat(upload(connection, id, new byte[bytes])).isEqualTo(Uploads.Reply.DROPPED);
        drained++;
      }
      assertThat(connection.alive()).isTrue();
      assertThat(owner.stats().peers().strangers() - before).isEqualTo(drained);
    }
    assertThat(read()).containsOnlyKeys(Path.SENT);
  }

  /** Uploads that are longer or shorter than they say touch nothing beyond. */
  @Test
  void uploadsThatLieAboutTheirLengthAreDropped() throws Exception {
    final BlockPort port = ports.get("owner");
    try (Connections connections = new Connections(port.conf(), port.security())) {
      final Connection connection =
          connections.connect(BlockPort.HOST, port.port(), Duration.ofSeconds(5));
      for (final int more : new int[] {-5, 5, 50_000}) {
        final UploadId id = UploadId.word(UploadId.QUESTION, 7, 0, 1_000);
        assertThat(upload(connection, id, new byte[1_000 + more])).isEqualTo(Uploads.Reply.DROPPED);
      }
      assertThat(connection.alive()).isTrue();
    }
  }

  /** Bytes go to executors that the driver lists, and to nobody else. */
  @Test
  void whoIsNotListedGetsNoAnswer() throws Exception {
    final List<String> asked = new ArrayList<>();
    final KnownNeighbours neighbours =
        new KnownNeighbours(
            executorId -> {
              asked.add(executorId);
              return null;
            },
            io.zerohop.device.posix.Clock.system());
    for (int i = 0; i < 50; i++) {
      final String name = "stranger-" + i;
      assertThat(org.assertj.core.api.Assertions.catchThrowable(() -> neighbours.find(name)))
          .isInstanceOf(io.zerohop.shuffle.transport.remote.carrier.CarrierException.class);
    }
    assertThat(asked).as("the driver is asked once a second").hasSizeLessThan(5);
    final BlockPort port = ports.get("owner");
    try (Connections connections = new Connections(port.conf(), port.security())) {
      final Connection connection =
          connections.connect(BlockPort.HOST, port.port(), Duration.ofSeconds(5));
      final ByteBuffer body =
          Words.body("nobody", ByteBuffer.wrap(new byte[] {7})); // PING, if it were one of us.
      final byte[] bytes = new byte[body.remaining()];
      body.get(bytes);
      assertThat(upload(connection, UploadId.word(UploadId.QUESTION, 9, 1, bytes.length), bytes))
          .isEqualTo(Uploads.Reply.TAKEN);
    }
    assertThat(owner.stats().peers().readers()).isZero();
  }

  private static Uploads.Reply upload(
      final Connection connection, final UploadId id, final byte[] body) throws Exception {
    final CompletableFuture<Uploads.Reply> end = new CompletableFuture<>();
    connection.upload(
        id,
        ByteBuffer.wrap(body),
        (reply, failure) -> {
          if (failure == null) {
            end.complete(reply);
          } else {
            end.completeExceptionally(failure);
          }
        });
    return end.get(20, TimeUnit.SECONDS);
  }
}
