package io.zerohop.spark.control;

import io.netty.util.concurrent.Future;
import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.spark.control.ControlConnector.ControlSecurity;
import io.zerohop.spark.control.OpenChannels.ControlLimits;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.log.UnusableException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.crypto.AuthClientBootstrap;
import org.apache.spark.network.crypto.AuthServerBootstrap;
import org.apache.spark.network.server.OneForOneStreamManager;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.util.Utils;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The control channel on Spark's transport; see the package for the protocol. Thread safe. Has one
 * thread that accepts and two each that answer and ask, which end within a few seconds of {@link
 * #close}, and up to 16 that connect, while they do.
 */
public final class SparkControlChannel implements ControlChannel {
  private final ControlLimits limits;
  private final Config conf;
  private final OpenChannels incoming;
  private final OpenChannels outgoing;
  private final TransportContext asking;

  /** Absent, with the server, if this end only asks. */
  private final @Nullable TransportContext answering;

  private final @Nullable TransportServer server;
  private final TransportClientFactory clients;
  private final ControlConnector connector;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * Listens from now on.
   *
   * @param conf has the port, and how long a proof and an answer may take
   * @param bindHost address to listen at; without one, all of this host
   * @param secret the application's, at least 16 bytes
   * @param service stays the caller's; without one, the channel only asks and listens nowhere
   * @throws IllegalStateException if no port can be had; names the key
   */
  public SparkControlChannel(
      final SparkConf spark,
      final Config conf,
      final SecurityManager security,
      final @Nullable String bindHost,
      final byte[] secret,
      final @Nullable ControlService service) {
    this(spark, conf, security, bindHost, secret, service, ControlLimits.DEFAULT);
  }

  /** The same for a keeper, whose questions are small and whose memory is, too. */
  public static SparkControlChannel ofKeeper(
      final SparkConf spark,
      final Config conf,
      final SecurityManager security,
      final @Nullable String bindHost,
      final byte[] secret,
      final ControlService service) {
    return new SparkControlChannel(
        spark, conf, security, bindHost, secret, service, ControlLimits.KEEPER);
  }

  SparkControlChannel(
      final SparkConf spark,
      final Config conf,
      final SecurityManager security,
      final @Nullable String bindHost,
      final byte[] secret,
      final @Nullable ControlService service,
      final ControlLimits limits) {
    final ControlSecurity keys = new ControlSecurity(secret);
    final TransportConf transport = ControlSecurity.transport(spark, security);
    this.limits = limits;
    this.conf = conf;
    this.incoming = new OpenChannels(limits, conf, true);
    this.outgoing = new OpenChannels(limits, conf, false);
    this.answering =
        service == null
            ? null
            : new TransportContext(transport, new ControlRpcHandler(service, limits, incoming));
    this.asking =
        new TransportContext(transport, new ControlRpcHandler(null, limits, outgoing), false, true);
    this.clients =
        asking.createClientFactory(
            List.of(new AuthClientBootstrap(transport, ControlSecurity.USER, keys)));
    this.connector = new ControlConnector(clients);
    try (Undo undo = new Undo(this::closeTransport, connector)) {
      this.server =
          answering == null ? null : listen(answering, bindHost, conf.port(), transport, keys);
      undo.done();
    }
  }

  private static TransportServer listen(
      final TransportContext answering,
      final @Nullable String host,
      final int first,
      final TransportConf transport,
      final ControlSecurity keys) {
    final int retries = transport.portMaxRetries();
    for (int retry = 0; ; retry++) {
      final int port = first == 0 ? 0 : Utils.userPort(first, retry);
      try {
        return answering.createServer(
            host, port, List.of(new AuthServerBootstrap(transport, keys)));
      } catch (final Exception e) {
        // Netty throws what it does not declare.
        if (retry >= retries || !Utils.isBindCollision(e)) {
          throw new UnusableException(
              Message.of("cannot listen for control connections")
                  .at((host == null ? "this host" : host) + ", port " + port)
                  .because(e)
                  .remedy(
                      "set spark.zerohop.port (a keeper's: spark.zerohop.keeper.port) to a free"
                          + " port or 0, or raise spark.port.maxRetries"),
              e);
        }
      }
    }
  }

  /** The host that map statuses carry, if it is this one's own address; else null, for all. */
  public static @Nullable String ownAddress(final String host) {
    try {
      final InetAddress address = InetAddress.getByName(host);
      return NetworkInterface.getByInetAddress(address) == null ? null : host;
    } catch (final IOException e) {
      return null; // Behind an address translation, or known by that name elsewhere only.
    }
  }

  @Override
  public int port() {
    return server == null ? 0 : server.getPort();
  }

  @Override
  public long strangers() {
    return incoming.strangers();
  }

  @Override
  public ControlLink connect(final String host, final int port, final Duration limit) {
    final String peer = host + ":" + port;
    if (closed.get()) {
      throw ControlConnector.closed(peer, null);
    }
    final TransportClient client = connector.connect(host, port, limit);
    return new SparkControlLink(client, peer, limits, conf);
  }

  /**
   * Closes the channel. Waits a few seconds at most for work on the channel's threads, so none of
   * them should call it.
   */
  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    connector.close();
    if (server != null) {
      server.close();
    }
    outgoing.close();
    incoming.close();
    closeTransport();
  }

  private void closeTransport() {
    clients.close();
    asking.close();
    if (answering != null) {
      answering.close();
    }
  }

  /**
   * Brings questions to the service and its answers back. Stands behind Spark's own handler, which
   * lets nothing through before the other end has proved itself. Spark's connections carry
   * questions both ways, and nobody proves anything to the end that connected before it may ask
   * there; so that end has no service, and answers none. Thread safe; calls of one connection come
   * by one thread.
   */
  private static final class ControlRpcHandler extends RpcHandler {
    private static final Logger LOG = LoggerFactory.getLogger(ControlRpcHandler.class);

    /** Absent at the end that asks. */
    private final @Nullable ControlService service;

    private final ControlLimits limits;
    private final OpenChannels channels;
    private final StreamManager noStreams = new OneForOneStreamManager();
    private final AtomicLong lastLink = new AtomicLong();
    private final ConcurrentHashMap<TransportClient, Long> links = new ConcurrentHashMap<>();

    ControlRpcHandler(
        final @Nullable ControlService service,
        final ControlLimits limits,
        final OpenChannels channels) {
      this.service = service;
      this.limits = limits;
      this.channels = channels;
    }

    @Override
    public void channelActive(final TransportClient client) {
      channels.opened(client);
    }

    @Override
    public void receive(
        final TransportClient client,
        final ByteBuffer question,
        final RpcResponseCallback callback) {
      if (service == null) {
        throw new UnsupportedOperationException("This end asks");
      }
      final long link = links.computeIfAbsent(client, ignored -> lastLink.incrementAndGet());
      final AtomicBoolean answered = new AtomicBoolean();
      try {
        service.asked(
            link,
            question,
            answer -> {
              if (!answered.compareAndSet(false, true)) {
                throw new IllegalStateException("A request of link " + link + " has its response");
              }
              answer(client, answer, callback);
            });
      } catch (final RuntimeException e) {
        if (answered.compareAndSet(false, true)) {
          callback.onFailure(new Refusal(e));
        } else {
          SparkCode.ANSWERED_TWICE
              .says("a request failed after it was answered")
              .at(String.valueOf(client))
              .warn(LOG, e);
        }
      }
    }

    private void answer(
        final TransportClient client, final ByteBuffer answer, final RpcResponseCallback callback) {
      if (answer.remaining() > limits.answerBytes()) {
        callback.onFailure(
            new Refusal(
                Category.FALLBACK,
                "The answer has "
                    + answer.remaining()
                    + " bytes; at most "
                    + limits.answerBytes()
                    + " may be sent"));
      } else if (client.isActive()) {
        callback.onSuccess(answer.slice());
      }
    }

    @Override
    public void channelInactive(final TransportClient client) {
      try {
        final Long link = links.remove(client);
        if (link != null && service != null) {
          service.disconnected(link);
        }
      } finally {
        channels.ended(client);
      }
    }

    @Override
    public StreamManager getStreamManager() {
      return noStreams;
    }
  }

  /** A proven connection to another executor's channel, for questions. Thread safe; owns it. */
  private static final class SparkControlLink extends BreakableLink {
    private final TransportClient client;
    private final String peer;
    private final ControlLimits limits;
    private final Config conf;

    /**
     * @param client proven; this link's from now on
     * @param peer how messages name the other end
     * @param conf says how long an answer may take
     */
    SparkControlLink(
        final TransportClient client,
        final String peer,
        final ControlLimits limits,
        final Config conf) {
      this.client = client;
      this.peer = peer;
      this.limits = limits;
      this.conf = conf;
      client.getChannel().closeFuture().addListener(ignored -> breakNow());
    }

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      if (question.remaining() > limits.questionBytes()) {
        return CompletableFuture.failedFuture(
            new ZerohopException(
                Category.FALLBACK,
                Message.of(
                        "a request of "
                            + question.remaining()
                            + " bytes is longer than "
                            + limits.questionBytes())
                    .at(peer)));
      }
      final CompletableFuture<ByteBuffer> future = begin();
      if (!future.isDone()) {
        try {
          send(question, future);
        } catch (final RejectedExecutionException e) {
          future.completeExceptionally(closed(e));
        }
      }
      return future;
    }

    private void send(final ByteBuffer question, final CompletableFuture<ByteBuffer> future) {
      final long request =
          client.sendRpc(
              question.slice(),
              new RpcResponseCallback() {
                /** The buffer is Spark's, which takes it back. */
                @Override
                public void onSuccess(final ByteBuffer answer) {
                  if (!future.isDone()) {
                    future.complete(ByteBuffer.allocate(answer.remaining()).put(answer).flip());
                  }
                }

                @Override
                public void onFailure(final Throwable failure) {
                  final ZerohopException refusal = Refusal.read(failure);
                  future.completeExceptionally(refusal == null ? closed(failure) : refusal);
                }
              });
      final long limit = conf.device().timeout().toNanos();
      final Future<?> timer =
          client
              .getChannel()
              .eventLoop()
              .schedule(() -> giveUp(request, future), limit, TimeUnit.NANOSECONDS);
      future.whenComplete((answer, failure) -> timer.cancel(false));
    }

    private void giveUp(final long request, final CompletableFuture<ByteBuffer> future) {
      client.removeRpcRequest(request);
      future.completeExceptionally(
          new ExchangeException(
              Reason.TIMEOUT,
              Message.of(
                      "an executor did not answer within "
                          + conf.device().timeout().toMillis()
                          + " ms")
                  .at(peer)
                  .remedy("if it is only slow, raise spark.zerohop.device.timeout")));
    }

    @Override
    protected ExchangeException closed(final @Nullable Throwable cause) {
      return new ExchangeException(
          Reason.CLOSED, "The control connection to " + peer + " ended", cause);
    }

    @Override
    public boolean alive() {
      return super.alive() && client.isActive();
    }

    @Override
    public void close() {
      client.getChannel().close();
      breakNow();
    }

    @Override
    public String toString() {
      return "control link to " + peer;
    }
  }
}
