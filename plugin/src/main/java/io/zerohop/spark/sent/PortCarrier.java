package io.zerohop.spark.sent;

import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.conf.Config.SentCodec;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.Carrier;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.remote.Carrier.MessageSizes;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.RemoteService.RemoteThreads;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.Connections.PortLink;
import io.zerohop.spark.sent.Connections.SelfTest;
import io.zerohop.spark.sent.MessageCodec.CodecChoice;
import io.zerohop.spark.sent.Uploads.Arriving;
import io.zerohop.spark.sent.Uploads.ArrivingMessage;
import io.zerohop.spark.sent.Uploads.ArrivingWord;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.jspecify.annotations.Nullable;
import scala.collection.Iterator;

/**
 * Carries requests, responses and messages by uploads to the block ports that Spark's executors
 * have open, with whatever proof and encryption Spark has on: path {@code sent}, see docs/sent.md.
 * Thread safe; owns its connections.
 */
public final class PortCarrier implements Carrier {
  private static final int MAX_ANSWER_BYTES = 64 << 20;

  /** Of all readers together, beside one for each: enough to fill the links of a host. */
  private static final int MAX_FURTHER_CONNECTIONS = 64;

  /** From 256 KiB on a message costs the same for each byte. */
  private static final MessageSizes SIZES = new MessageSizes(2 << 20, 4);

  private final SparkPort port;
  private final Uploads uploads;
  private final Connections connections;
  private final KnownNeighbours neighbours;
  private final RemoteThreads threads;
  private final Slabs slabs;
  private final PortRoad.Means roads;
  private final Clock clock;
  private final SecureRandom random = new SecureRandom();
  private final Map<Long, PortLink> links = new ConcurrentHashMap<>();

  /** Words on their way here, each with the time at which it is given up. */
  private final Map<ArrivingWord, Long> arrivingWords = new ConcurrentHashMap<>();

  private final SelfTest selfTest;
  private volatile @Nullable Arrivals arrivals;
  private volatile @Nullable ServedLinks served;
  private volatile boolean closed;

  /**
   * @param port of this executor
   * @param connections owned from now on
   * @param threads the caller's: {@code sends} sum and compress what is sent, {@code transfers}
   *     expand and check what has come, {@code answers} read questions, {@code connects} open
   *     connections to readers
   * @param slabs for what is compressed, and expanded; stay the caller's
   */
  PortCarrier(
      final SparkPort port,
      final Connections connections,
      final RemoteThreads threads,
      final Slabs slabs,
      final Clock clock) {
    this.port = port;
    this.uploads = port.uploads();
    this.connections = connections;
    this.clock = clock;
    this.neighbours = new KnownNeighbours(port.neighbours(), clock);
    this.threads = threads;
    this.slabs = slabs;
    this.roads =
        new PortRoad.Means(
            threads.sends(),
            threads.connects(),
            slabs,
            clock,
            new LongAdder(),
            new Semaphore(MAX_FURTHER_CONNECTIONS));
    this.selfTest = new SelfTest(connections, port.self(), clock);
    uploads.receiver(this::arriving);
  }

  /**
   * Uploads something to this executor itself, as another one would.
   *
   * @throws CarrierException if that does not come
   */
  void test() {
    try {
      selfTest.run(port.conf().connectTimeout());
    } catch (final ExchangeException e) {
      throw new CarrierException(e.message(), e);
    }
  }

  @Override
  public byte[] address() {
    return port.executorId().getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public MessageSizes sizes() {
    return SIZES;
  }

  @Override
  public void serve(final Arrivals taker, final ControlService service) {
    arrivals = taker;
    served =
        new ServedLinks(service, this::connectTo, threads.connects(), threads.answers(), clock);
  }

  /** To an executor of this application, and nobody else. */
  private Connection connectTo(final String executorId) {
    if (closed) {
      throw new CarrierException("this executor is shutting down", null);
    }
    final BlockManagerId to = neighbours.find(executorId);
    try {
      return connections.connect(to.host(), to.port(), port.conf().connectTimeout());
    } catch (final ExchangeException e) {
      neighbours.forget(executorId);
      throw new CarrierException(
          Message.of("an executor cannot be reached").at("executor " + executorId).because(e), e);
    }
  }

  @Override
  public Road connect(final byte[] address) {
    final String executorId = new String(address, StandardCharsets.UTF_8);
    return new PortRoad(
        () -> connectTo(executorId),
        connections.threads(),
        roads,
        new CodecChoice(port.codec(), clock),
        transfer -> tellLost(executorId, transfer));
  }

  private void tellLost(final String executorId, final long transfer) {
    final ServedLinks answering = served;
    if (answering != null) {
      answering.lost(executorId, transfer);
    }
  }

  @Override
  public ControlLink link(final BlockSource owner, final Duration limit) {
    if (closed) {
      throw new ExchangeException(Reason.CLOSED, "this executor is shutting down");
    }
    selfTest.run(limit); // What is sent here has to come: not if this executor is leaving.
    final BlockManagerId to = (BlockManagerId) owner.address();
    final Connection connection = connections.connect(to.host(), to.port(), limit);
    final PortLink link =
        new PortLink(
            random.nextLong() & Long.MAX_VALUE,
            port.executorId(),
            owner.executorId(),
            connection,
            port.conf(),
            clock);
    links.put(link.number(), link);
    link.onClosed(() -> links.remove(link.number()));
    return link;
  }

  private @Nullable Arriving arriving(final UploadId id) {
    return switch (id.kind()) {
      case UploadId.MESSAGE, UploadId.COMPRESSED -> message(id);
      case UploadId.WORD -> word(id);
      default -> null;
    };
  }

  private @Nullable Arriving message(final UploadId id) {
    final Arrivals taker = arrivals;
    if (taker == null || id.length() > Math.min(id.expanded(), SIZES.longest())) {
      return null;
    }
    return ArrivingMessage.of(id, taker, threads.transfers(), slabs);
  }

  private @Nullable Arriving word(final UploadId id) {
    if (id.type() == UploadId.ECHO) {
      return selfTest.arriving(id);
    }
    final long due = clock.in(port.conf().device().timeout()); // Before it takes room.
    final ArrivingWord word = wordOf(id);
    if (word != null) {
      arrivingWords.put(word, due);
    }
    return word;
  }

  private @Nullable ArrivingWord wordOf(final UploadId id) {
    return switch (id.type()) {
      case UploadId.QUESTION, UploadId.BYE -> question(id);
      case UploadId.ANSWER -> answer(id);
      case UploadId.LOST -> lost(id);
      default -> null;
    };
  }

  private @Nullable ArrivingWord question(final UploadId id) {
    final ServedLinks answering = served;
    return answering == null ? null : answering.arriving(id);
  }

  private @Nullable ArrivingWord answer(final UploadId id) {
    final PortLink link = links.get(id.number());
    if (link == null || !link.waits(id.place()) || id.length() > MAX_ANSWER_BYTES) {
      return null;
    }
    return new ArrivingWord(
        id.length(), threads.transfers(), words -> link.answered(id.place(), words), () -> {});
  }

  private @Nullable ArrivingWord lost(final UploadId id) {
    final Arrivals taker = arrivals;
    final ByteBuffer nothing = ArrivingWord.body(ByteBuffer.allocate(0));
    return taker == null || id.length() != nothing.remaining()
        ? null
        : new ArrivingWord(
            id.length(),
            threads.transfers(),
            words ->
                taker.lost(
                    id.number() | (long) id.place() << 63,
                    "its owner lost the connection to this executor"),
            () -> {});
  }

  @Override
  public void maintain() {
    links.values().forEach(PortLink::checkOverdue);
    arrivingWords.forEach(this::checkOverdue);
    final ServedLinks answering = served;
    if (answering != null) {
      answering.maintain();
    }
  }

  /** The rest of a word may never come: its sender's host may be gone. */
  private void checkOverdue(final ArrivingWord word, final long overdue) {
    if (clock.isOver(overdue)) {
      word.failed("it did not arrive in time");
    }
    if (word.isOver()) {
      arrivingWords.remove(word);
    }
  }

  @Override
  public long strangers() {
    return uploads.strangers();
  }

  @Override
  public long savedBytes() {
    return roads.saved().sum();
  }

  @Override
  public String describe() {
    return "over Spark's connections, " + PortEncryption.of(port.spark()).words();
  }

  @Override
  public boolean end() {
    closed = true;
    uploads.receiver(null);
    links.values().forEach(PortLink::close);
    final ServedLinks answering = served;
    if (answering != null) {
      answering.close();
    }
    return connections.end();
  }

  /**
   * Caches where the driver says that executors are. A new name costs one request for the whole
   * list. After a name that is not in the list, the driver is asked again a second later at the
   * earliest, so that invented names neither load it nor hide executors that were listed before.
   * Until then it is not known of other new names whether they are listed. Thread safe.
   */
  static final class KnownNeighbours {
    private static final Duration PAUSE = Duration.ofSeconds(1);

    private final Supplier<? extends Collection<BlockManagerId>> driver;
    private final Clock clock;
    private final Map<String, BlockManagerId> known = new ConcurrentHashMap<>();
    private long askAgain;

    /** Thrown if the driver was asked for another name a moment ago, and is not asked for this. */
    static final class TooSoonException extends CarrierException {
      private static final long serialVersionUID = 1L;

      private final long until;

      /**
       * @param until when it will be asked again, by the clock
       */
      TooSoonException(final String executorId, final long until) {
        super("the driver is not asked for executor " + executorId + " yet", null);
        this.until = until;
      }

      long until() {
        return until;
      }
    }

    KnownNeighbours(
        final Supplier<? extends Collection<BlockManagerId>> driver, final Clock clock) {
      this.driver = driver;
      this.clock = clock;
      this.askAgain = clock.nanos();
    }

    /**
     * Where an executor is. May ask the driver, and wait for it.
     *
     * @throws TooSoonException if that is not known yet
     * @throws CarrierException if it is none of this application
     */
    BlockManagerId find(final String executorId) {
      BlockManagerId found = known.get(executorId);
      if (found == null) {
        ask(executorId);
        found = known.get(executorId);
      }
      if (found == null) {
        throw new CarrierException("the driver lists no executor " + executorId, null);
      }
      return found;
    }

    /** One at a time, and not too often; who waits may find what another one has learned. */
    private synchronized void ask(final String executorId) {
      if (known.containsKey(executorId)) {
        return;
      }
      if (!clock.isOver(askAgain)) {
        throw new TooSoonException(executorId, askAgain);
      }
      driver.get().forEach(each -> known.put(each.executorId(), each));
      if (!known.containsKey(executorId)) {
        askAgain = clock.in(PAUSE);
      }
    }

    /** It may come back at another place, or not at all; who wants to know asks anew. */
    synchronized void forget(final String executorId) {
      known.remove(executorId);
      askAgain = clock.nanos();
    }
  }

  /**
   * Starts what carries blocks over Spark's block ports, if the Spark at hand lets it. Immutable.
   *
   * @param security of Spark's connections
   * @param uploads brings what others send; stays the caller's
   * @param executorId this executor
   * @param self where its block port is
   * @param neighbours the block managers of the others, asked of the driver at each call; bytes go
   *     to no other address, whatever is requested
   */
  public record SparkPort(
      SparkConf spark,
      Config conf,
      SecurityManager security,
      Uploads uploads,
      String executorId,
      Supplier<BlockManagerId> self,
      Supplier<? extends Collection<BlockManagerId>> neighbours)
      implements CarrierStarter {

    /** Of this executor. */
    public static SparkPort of(
        final SparkEnv env, final SparkConf spark, final Config conf, final Uploads uploads) {
      final BlockManager manager = env.blockManager();
      return new SparkPort(
          spark,
          conf,
          env.securityManager(),
          uploads,
          env.executorId(),
          manager::blockManagerId,
          () -> others(manager));
    }

    /** Returns how messages are compressed: not at all where Spark's compression is off. */
    SentCodec codec() {
      return spark.getBoolean("spark.shuffle.compress", true) ? conf.sentCodec() : SentCodec.NONE;
    }

    private static List<BlockManagerId> others(final BlockManager manager) {
      final List<BlockManagerId> others = new ArrayList<>();
      final Iterator<BlockManagerId> peers =
          SparkLinks.peers(manager.master(), manager.blockManagerId()).iterator();
      while (peers.hasNext()) {
        others.add(peers.next());
      }
      return others;
    }

    @Override
    public Carrier start(final RemoteThreads threads, final Slabs slabs, final Clock clock) {
      final PortCarrier carrier =
          new PortCarrier(
              this, new Connections(spark, security, conf.connectTimeout()), threads, slabs, clock);
      try (Undo undo = new Undo(carrier::end)) {
        carrier.test();
        return undo.keep(carrier);
      }
    }
  }

  /** The encryption of Spark's connections between executors. */
  public enum PortEncryption {
    NONE("not encrypted"),
    AES("encrypted by spark.network.crypto"),
    SASL("encrypted by SASL"),
    TLS("encrypted by TLS");

    private final String words;

    PortEncryption(final String words) {
      this.words = words;
    }

    /** Returns the encryption of a configuration, as far as this release of Spark has it. */
    public static PortEncryption of(final SparkConf conf) {
      final String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
      final boolean knowsTls = Integer.parseInt(version.substring(0, version.indexOf('.'))) >= 4;
      if (knowsTls && conf.getBoolean("spark.ssl.rpc.enabled", false)) {
        return TLS;
      }
      if (!conf.getBoolean("spark.authenticate", false)) {
        return NONE; // Spark's other keys do nothing without.
      }
      if (conf.getBoolean("spark.network.crypto.enabled", false)) {
        return AES;
      }
      return conf.getBoolean("spark.authenticate.enableSaslEncryption", false) ? SASL : NONE;
    }

    /** Returns the words for a connection. */
    String words() {
      return words;
    }

    /**
     * Returns why blocks must not be sent as they are: the user wants them encrypted on disks, and
     * Spark's block transfer also encrypts them on the way. Null if they may be.
     */
    public static @Nullable String obstacle(final SparkConf conf) {
      return conf.getBoolean("spark.io.encryption.enabled", false) && of(conf) == NONE
          ? "spark.io.encryption.enabled requires encryption, and Spark's connections have none"
          : null;
    }
  }
}
