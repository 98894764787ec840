package io.zerohop.spark.sent;

import io.zerohop.device.Message;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.Carrier;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.MessageSizes;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.RemoteNode.RemoteThreads;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.Connections.SelfTest;
import io.zerohop.spark.sent.MessageCodec.CodecChoice;
import io.zerohop.spark.sent.SparkPort.PortEncryption;
import io.zerohop.spark.sent.Uploads.Arriving;
import io.zerohop.spark.sent.Uploads.UploadId;
import io.zerohop.spark.sent.WordBodies.ArrivingWord;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.storage.BlockManagerId;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Carries requests, responses and messages by uploads to the block ports that Spark's executors
 * have open, with whatever proof and encryption Spark has on: path {@code sent}, see docs/sent.md.
 * Thread safe; owns its connections.
 */
final class PortCarrier implements Carrier {
  private static final Logger LOG = LoggerFactory.getLogger(PortCarrier.class);

  static final int MAX_QUESTION_BYTES = 16 << 20;
  private static final int MAX_ANSWER_BYTES = 64 << 20;

  /** Of questions that are arriving, or wait to be read, altogether. */
  private static final long MAX_WAITING_BYTES = 64 << 20;

  /** Of all readers together, beside one for each: enough to fill the links of a host. */
  private static final int MAX_FURTHER_CONNECTIONS = 64;

  /** From 256 KiB on a message costs the same for each byte. */
  private static final MessageSizes SIZES = new MessageSizes(2 << 20, 2 << 20, 4);

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
  private final AtomicLong waitingBytes = new AtomicLong();

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
   *     expand and check what has come, {@code answers} read questions
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
            threads.sends(), slabs, clock, new LongAdder(), new Semaphore(MAX_FURTHER_CONNECTIONS));
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
  public void receiver(final Arrivals taker) {
    arrivals = taker;
  }

  @Override
  public void service(final ControlService service) {
    served = new ServedLinks(service, this::connectTo, threads.connects());
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
  public Road connect(final byte[] address, final Consumer<String> onFailure) {
    final String executorId = new String(address, StandardCharsets.UTF_8);
    return new PortRoad(
        () -> connectTo(executorId),
        connections.threads(),
        roads,
        new CodecChoice(port.codec(), clock),
        transfer -> tellLost(executorId, transfer),
        onFailure);
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
            port.conf().device().timeout(),
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
    final int bytes = id.length();
    if (answering == null || bytes > MAX_QUESTION_BYTES) {
      return null;
    }
    if (waitingBytes.addAndGet(bytes) > MAX_WAITING_BYTES) {
      waitingBytes.addAndGet(-bytes);
      return null;
    }
    return new ArrivingWord(
        bytes,
        threads.answers(), // Not behind those that wait for GPUs: a reader takes silence for death.
        words -> read(answering, id, words),
        () -> waitingBytes.addAndGet(-bytes));
  }

  private void read(
      final ServedLinks answering, final UploadId id, final @Nullable ByteBuffer words) {
    final String sender = words == null ? null : WordBodies.sender(words);
    if (words == null || sender == null) {
      LOG.debug("a request is invalid or was damaged");
      return; // Who asked gives up by itself.
    }
    if (id.type() == UploadId.BYE) {
      answering.ended(sender, id.number());
    } else if (!answering.askedAtOnce(sender, id.number(), id.place(), words)) {
      readLater(id.length(), () -> answering.asked(sender, id.number(), id.place(), words));
    }
  }

  /** Where the sender has to be connected to first, which takes long. */
  private void readLater(final int bytes, final Runnable read) {
    waitingBytes.addAndGet(bytes);
    try {
      threads
          .connects()
          .execute(
              () -> {
                try {
                  read.run();
                } finally {
                  waitingBytes.addAndGet(-bytes);
                }
              });
    } catch (final RejectedExecutionException e) {
      waitingBytes.addAndGet(-bytes);
      LOG.debug("this executor is shutting down", e);
    }
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
    final ByteBuffer nothing = WordBodies.body(ByteBuffer.allocate(0));
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
   * Thread safe.
   */
  static final class KnownNeighbours {
    private static final Duration PAUSE = Duration.ofSeconds(1);

    private final Supplier<? extends Collection<BlockManagerId>> driver;
    private final Clock clock;
    private final Map<String, BlockManagerId> known = new ConcurrentHashMap<>();
    private long askAgain;

    KnownNeighbours(
        final Supplier<? extends Collection<BlockManagerId>> driver, final Clock clock) {
      this.driver = driver;
      this.clock = clock;
      this.askAgain = clock.nanos();
    }

    /**
     * Where an executor is. May ask the driver, and wait for it.
     *
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
      if (known.containsKey(executorId) || !clock.isOver(askAgain)) {
        return;
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
}
