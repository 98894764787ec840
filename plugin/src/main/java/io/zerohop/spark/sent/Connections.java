package io.zerohop.spark.sent;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.ControlChannel.BreakableLink;
import io.zerohop.spark.control.ControlConnector;
import io.zerohop.spark.sent.Uploads.Arriving;
import io.zerohop.spark.sent.Uploads.ArrivingWord;
import io.zerohop.spark.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientBootstrap;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.crypto.AuthClientBootstrap;
import org.apache.spark.network.shuffle.protocol.UploadBlockStream;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.StorageLevel;
import org.jspecify.annotations.Nullable;
import scala.Tuple2;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Connections of our own to block ports of executors, with the proof and the encryption that
 * Spark's own have, and the links to owners over them. Thread safe. Owns the connections, and some
 * threads of Netty's; the carrier closes the links.
 */
final class Connections {
  /** Settings of Spark's own block transfer hold for these, too. */
  private static final String MODULE = "shuffle";

  private static final String THREADS = "spark.shuffle.io.clientThreads";
  private static final int MAX_THREADS = 4;
  private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

  private final TransportContext context;
  private final TransportClientFactory factory;
  private final ControlConnector connector;
  private final byte[] metadata;
  private final int threads;
  private final Set<Connection> open = ConcurrentHashMap.newKeySet();

  /** Uploads that have not ended: Netty says that a connection is closed before it fails these. */
  private final AtomicInteger underWay = new AtomicInteger();

  private volatile boolean closed;

  /**
   * @param limit how long {@link #connect} may wait, at most
   */
  Connections(final SparkConf conf, final SecurityManager security, final Duration limit) {
    final SparkConf own = conf.clone();
    final int half = Runtime.getRuntime().availableProcessors() / 2;
    own.setIfMissing(THREADS, String.valueOf(Math.max(1, Math.min(MAX_THREADS, half))));
    final TransportConf transport = LateConnections.givingUp(MODULE, own, security, limit);
    threads = Math.max(1, Math.min(MAX_THREADS, transport.clientThreads()));
    final List<TransportClientBootstrap> bootstraps =
        security.isAuthenticationEnabled()
            ? List.of(new AuthClientBootstrap(transport, conf.getAppId(), security))
            : List.of();
    metadata = metadata(conf);
    context = new TransportContext(transport, new LateConnections(limit), false, true);
    factory = context.createClientFactory(bootstraps);
    connector = new ControlConnector(factory);
  }

  /** What Spark asks of each upload, and nobody looks at: as of what is only on disk. */
  private static byte[] metadata(final SparkConf conf) {
    final ClassTag<Object> any = ClassTag$.MODULE$.Any();
    final ByteBuffer written =
        new JavaSerializer(conf)
            .newInstance()
            .serialize(
                new Tuple2<>(StorageLevel.DISK_ONLY(), any), ClassTag$.MODULE$.apply(Tuple2.class));
    final byte[] bytes = new byte[written.remaining()];
    written.get(bytes);
    return bytes;
  }

  /**
   * How many of Netty's threads serve these connections, 4 at most. More to one executor is vain.
   */
  int threads() {
    return threads;
  }

  /**
   * A connection of its own; the caller's to close.
   *
   * @throws ExchangeException as {@link io.zerohop.shuffle.transport.ControlChannel#connect} says
   */
  Connection connect(final String host, final int port, final Duration limit) {
    if (closed) {
      throw new ExchangeException(
          ExchangeException.Reason.CLOSED, "this executor is shutting down");
    }
    final TransportClient client = connector.connect(host, port, limit);
    LateConnections.claim(client);
    final Connection made = new Connection(client, metadata, underWay);
    open.add(made);
    made.onClosed(() -> open.remove(made));
    if (closed) {
      made.close(); // Who closes may have passed it.
    }
    return made;
  }

  /**
   * Closes all and ends the threads. Waits for a limited time. Idempotent.
   *
   * @return whether nothing is being sent any more
   */
  boolean end() {
    closed = true;
    connector.close();
    open.forEach(Connection::close);
    final boolean ended =
        Deadline.in(CLOSE_LIMIT)
            .await(
                () -> open.isEmpty() && underWay.get() == 0,
                millis -> Clock.system().sleep(Duration.ofMillis(Math.min(10, millis))));
    factory.close();
    context.close();
    return ended;
  }

  /** A connection to the block port of one executor. Thread safe; whoever connected closes it. */
  static final class Connection {
    private final TransportClient client;
    private final byte[] metadata;
    private final AtomicInteger underWay;
    private volatile boolean closed;

    /**
     * @param client this connection's from now on
     * @param metadata what Spark asks of each upload
     * @param underWay counts uploads that have not ended, those of other connections too
     */
    Connection(final TransportClient client, final byte[] metadata, final AtomicInteger underWay) {
      this.client = client;
      this.metadata = metadata;
      this.underWay = underWay;
    }

    /**
     * Uploads bytes, and does not wait. A connection that fails one is closed: it may be lost, and
     * Spark takes it for active for some time after that.
     *
     * @param body must stay as it is until {@code end} was called
     * @param end called once, on a thread of Netty's, with the answer, or with a failure; not
     *     called if this throws
     */
    void upload(
        final UploadId id,
        final ByteBuffer body,
        final BiConsumer<@Nullable Reply, @Nullable Throwable> end) {
      final ByteBuffer header = new UploadBlockStream(id.encode().name(), metadata).toByteBuffer();
      final Outcome outcome = new Outcome(end);
      try {
        client.uploadStream(new NioManagedBuffer(header), new NioManagedBuffer(body), outcome);
      } catch (final RuntimeException | OutOfMemoryError e) {
        if (outcome.forget()) {
          close();
          throw e; // Which tells the caller.
        }
      }
    }

    /** Reports the end of one upload once; Spark may report its failure twice. */
    private final class Outcome implements RpcResponseCallback {
      private final BiConsumer<@Nullable Reply, @Nullable Throwable> end;
      private final AtomicBoolean ended = new AtomicBoolean();

      Outcome(final BiConsumer<@Nullable Reply, @Nullable Throwable> end) {
        this.end = end;
        underWay.incrementAndGet();
      }

      @Override
      public void onSuccess(final ByteBuffer response) {
        tell(Reply.of(response), null);
      }

      @Override
      public void onFailure(final Throwable failure) {
        tell(null, failure);
      }

      private void tell(final @Nullable Reply reply, final @Nullable Throwable failure) {
        if (ended.compareAndSet(false, true)) {
          if (failure != null) {
            close();
          }
          try {
            end.accept(reply, failure);
          } finally {
            underWay.decrementAndGet();
          }
        }
      }

      /** Nothing is said of it; false if something was. */
      boolean forget() {
        final boolean untold = ended.compareAndSet(false, true);
        if (untold) {
          underWay.decrementAndGet();
        }
        return untold;
      }
    }

    boolean alive() {
      return !closed && client.isActive();
    }

    /** Runs once when it is closed, on a thread of Netty's; at once if it is already. */
    void onClosed(final Runnable action) {
      client.getChannel().closeFuture().addListener(ignored -> action.run());
    }

    /** What is under way fails. Does not wait. Idempotent. */
    void close() {
      closed = true;
      client.getChannel().close();
    }
  }

  /**
   * A link to an owner: requests are uploads to it, and responses are uploads to this executor.
   * Thread safe; owns its connection.
   */
  static final class PortLink extends BreakableLink {
    private final long number;
    private final String self;
    private final String owner;
    private final Connection connection;
    private final Config conf;
    private final Clock clock;
    private final AtomicInteger nextQuestion = new AtomicInteger();
    private final Map<Integer, Open> open = new ConcurrentHashMap<>();

    /** A question that was not answered yet, for which it has until then. */
    private record Open(CompletableFuture<ByteBuffer> answer, Duration limit, long overdue) {}

    /**
     * @param number by which both ends know it; random
     * @param self this executor
     * @param owner how messages name the other end
     * @param conf says how long a question may wait for its answer
     */
    PortLink(
        final long number,
        final String self,
        final String owner,
        final Connection connection,
        final Config conf,
        final Clock clock) {
      this.number = number;
      this.self = self;
      this.owner = owner;
      this.connection = connection;
      this.conf = conf;
      this.clock = clock;
      connection.onClosed(this::breakNow);
    }

    long number() {
      return number;
    }

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      return ask(question, Duration.ZERO);
    }

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question, final Duration turn) {
      final int id = nextQuestion.getAndIncrement() & Integer.MAX_VALUE;
      final ByteBuffer body = ArrivingWord.body(self, question);
      if (body.remaining() > ServedLinks.MAX_QUESTION_BYTES) {
        return CompletableFuture.failedFuture(
            new ZerohopException(
                Category.FALLBACK, "a request to " + owner + " is too long: " + body.remaining()));
      }
      final CompletableFuture<ByteBuffer> answer = begin();
      final Duration usual = conf.device().timeout();
      final Duration limit = turn.compareTo(usual) > 0 ? turn : usual;
      open.put(id, new Open(answer, limit, clock.in(limit)));
      answer.whenComplete((got, failure) -> open.remove(id));
      if (!answer.isDone()) {
        connection.upload(
            UploadId.word(UploadId.QUESTION, number, id, body.remaining()),
            body,
            (reply, failure) -> asked(answer, reply, failure));
      }
      return answer;
    }

    private void asked(
        final CompletableFuture<ByteBuffer> answer,
        final @Nullable Reply reply,
        final @Nullable Throwable failure) {
      if (failure != null) {
        answer.completeExceptionally(closed(null));
      } else if (reply != Reply.TAKEN) {
        answer.completeExceptionally(
            new ZerohopException(Category.RETRY, "executor " + owner + " accepts no request now"));
      }
    }

    /** Returns whether a question waits for its answer. */
    boolean waits(final int id) {
      return open.containsKey(id);
    }

    /** An answer has come; null if it was damaged. */
    void answered(final int id, final @Nullable ByteBuffer answer) {
      final Open question = open.get(id);
      if (question == null) {
        return;
      }
      if (answer == null) {
        question
            .answer()
            .completeExceptionally(
                new ZerohopException(Category.RETRY, "a response of " + owner + " was damaged"));
      } else {
        question.answer().complete(answer);
      }
    }

    /** Gives up questions that were not answered in time. */
    void checkOverdue() {
      for (final Open question : open.values()) {
        if (clock.isOver(question.overdue())) {
          question
              .answer()
              .completeExceptionally(
                  new ExchangeException(
                      Reason.TIMEOUT,
                      "executor "
                          + owner
                          + " has not answered within "
                          + question.limit().toMillis()
                          + " ms"));
        }
      }
    }

    @Override
    protected ExchangeException closed(final @Nullable Throwable cause) {
      return new ExchangeException(
          Reason.CLOSED, "the connection to executor " + owner + " ended", cause);
    }

    @Override
    public boolean alive() {
      return super.alive() && connection.alive();
    }

    @Override
    public void close() {
      if (alive()) {
        final ByteBuffer body = ArrivingWord.body(self, ByteBuffer.allocate(0));
        connection.upload(
            UploadId.word(UploadId.BYE, number, 0, body.remaining()),
            body,
            (reply, failure) -> connection.close());
      }
      breakNow();
    }
  }

  /**
   * An upload to this executor itself, as others make them. It shows whether the Spark at hand has
   * the way at all, and whether it takes uploads now, which it does not once the executor is being
   * decommissioned. Thread safe; the connection is its connections'.
   */
  static final class SelfTest {
    private static final int BYTES = 64;

    private final Connections connections;
    private final Supplier<BlockManagerId> self;
    private final Clock clock;
    private final long secret = new SecureRandom().nextLong() & Long.MAX_VALUE;
    private final ReentrantLock turn = new ReentrantLock();

    /** Used by who has the turn. */
    private @Nullable Connection connection;

    /**
     * @param self where this executor's block port is
     */
    SelfTest(
        final Connections connections, final Supplier<BlockManagerId> self, final Clock clock) {
      this.connections = connections;
      this.self = self;
      this.clock = clock;
    }

    /**
     * Runs it, one at a time.
     *
     * @throws ExchangeException if it does not come within the limit, or the thread is interrupted
     */
    void run(final Duration limit) {
      if (!takeTurn(limit)) {
        throw new ExchangeException(
            Reason.TIMEOUT, "this executor's block port is still being tested by another thread");
      }
      try {
        runAlone(limit);
      } finally {
        turn.unlock();
      }
    }

    private boolean takeTurn(final Duration limit) {
      try {
        return clock.tryLock(turn, limit.multipliedBy(2)); // The other connects, and then waits.
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }

    private void runAlone(final Duration limit) {
      Connection to = connection;
      if (to == null || !to.alive()) {
        final BlockManagerId own = self.get();
        to = connections.connect(own.host(), own.port(), limit);
        connection = to;
      }
      final CompletableFuture<Reply> end = new CompletableFuture<>();
      to.upload(
          UploadId.word(UploadId.ECHO, secret, 0, BYTES),
          ByteBuffer.allocate(BYTES),
          (reply, failure) -> {
            if (failure == null) {
              end.complete(reply);
            } else {
              end.completeExceptionally(failure);
            }
          });
      try {
        final Reply reply = clock.get(end, limit);
        if (reply != Reply.TAKEN) {
          throw new ExchangeException(
              Reason.PROTOCOL,
              "this executor's block port does not hand uploads on (" + reply + ")");
        }
      } catch (final ExecutionException | TimeoutException e) {
        to.close();
        throw new ExchangeException(
            Reason.CLOSED,
            Message.of("this executor takes no uploads, as when it is being decommissioned")
                .because(e),
            e);
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new ExchangeException(Reason.CLOSED, "interrupted while connecting", e);
      }
    }

    /** What takes it. */
    @Nullable Arriving arriving(final UploadId id) {
      if (id.number() != secret || id.length() != BYTES) {
        return null;
      }
      return new Arriving(Runnable::run) {
        @Override
        void put(final int at, final ByteBuffer piece) {}

        @Override
        void read() {}

        @Override
        void dropped(final String why) {}
      };
    }
  }
}
