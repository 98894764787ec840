package io.zerohop.spark.control;

import io.netty.channel.ConnectTimeoutException;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.Hmac;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.compat.SparkLinks;
import java.io.IOException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.sasl.SecretKeyHolder;
import org.apache.spark.network.util.TransportConf;
import org.jspecify.annotations.Nullable;

/**
 * Connects within the caller's time limit. Spark's way to connect waits with limits of its own,
 * which are the same for all and whole seconds, and looks names up before; so it runs on a thread
 * that the caller can leave behind. Thread safe; owns the threads, not the factory.
 */
public final class ControlConnector implements AutoCloseable {
  private static final int THREADS = 16;
  private static final long IDLE_SECONDS = 5;

  private final TransportClientFactory factory;
  private final ThreadPoolExecutor threads;
  private final Set<CompletableFuture<TransportClient>> pending = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  public ControlConnector(final TransportClientFactory factory) {
    this.factory = factory;
    final AtomicInteger count = new AtomicInteger();
    this.threads =
        new ThreadPoolExecutor(
            THREADS,
            THREADS,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task ->
                Threads.daemon(
                    task, ControlSecurity.MODULE + "-connect-" + count.incrementAndGet()));
    threads.allowCoreThreadTimeOut(true);
  }

  /**
   * A connection of its own, proven both ways; the caller's.
   *
   * @throws ExchangeException as {@link io.zerohop.shuffle.transport.ControlChannel#connect} says
   */
  public TransportClient connect(final String host, final int port, final Duration limit) {
    final String peer = host + ":" + port;
    final CompletableFuture<TransportClient> result = new CompletableFuture<>();
    final FutureTask<Boolean> attempt =
        new FutureTask<>(() -> run(host, port, result), Boolean.TRUE);
    pending.add(result);
    try {
      threads.execute(attempt);
      return result.get(limit.toNanos(), TimeUnit.NANOSECONDS);
    } catch (final RejectedExecutionException e) {
      throw closed(peer, e);
    } catch (final ZerohopException e) {
      throw new ExchangeException(Reason.BUSY, Message.of(e), e); // There is no thread for it.
    } catch (final ExecutionException e) {
      throw failure(peer, Objects.requireNonNullElse(e.getCause(), e));
    } catch (final TimeoutException e) {
      throw abandon(
          attempt,
          result,
          new ExchangeException(
              Reason.TIMEOUT,
              Message.of("no control connection was accepted within " + limit.toMillis() + " ms")
                  .at(peer)
                  .remedy("if the executor is only slow, raise spark.zerohop.connect.timeout"),
              e));
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw abandon(
          attempt,
          result,
          new ExchangeException(Reason.TIMEOUT, "interrupted while connecting to " + peer, e));
    } finally {
      pending.remove(result);
    }
  }

  private void run(
      final String host, final int port, final CompletableFuture<TransportClient> result) {
    try {
      final TransportClient client = factory.createUnmanagedClient(host, port);
      if (!result.complete(client)) {
        client.getChannel().close();
      }
    } catch (final Throwable e) {
      result.completeExceptionally(e);
    }
  }

  /** Nobody waits any more; a connection that stands all the same is closed. */
  private ExchangeException abandon(
      final Future<?> attempt,
      final CompletableFuture<TransportClient> result,
      final ExchangeException reason) {
    if (!result.completeExceptionally(reason) && !result.isCompletedExceptionally()) {
      result.join().getChannel().close();
    }
    attempt.cancel(true);
    return reason;
  }

  private ExchangeException failure(final String peer, final Throwable failure) {
    if (closed) {
      return closed(peer, failure);
    }
    boolean ended = false;
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof ForeignBytesException) {
        return unproven(peer, failure);
      }
      if (cause instanceof LinkageError) {
        return new ExchangeException(
            Reason.PROTOCOL,
            Message.of("Spark's authentication needs a class that is missing")
                .at(peer)
                .because(cause)
                .remedy("put all of Spark's jars on the class path"),
            failure);
      }
      // No route may be a fault of the network, or of this host's own adapter.
      if (cause instanceof TimeoutException
          || cause instanceof ConnectTimeoutException
          || cause instanceof NoRouteToHostException
          || cause instanceof UnresolvedAddressException) {
        return new ExchangeException(
            Reason.TIMEOUT, peer + " has not accepted a control connection in time", failure);
      }
      if (cause instanceof ConnectException) {
        return new ExchangeException(
            Reason.REFUSED,
            Message.of("the control port refused the connection, so its executor may be gone")
                .at(peer)
                .because(cause),
            failure);
      }
      ended |= cause instanceof IOException;
    }
    return ended
        ? new ExchangeException(
            Reason.CLOSED,
            peer + " ended the control connection before either side had proved itself",
            failure)
        : unproven(peer, failure);
  }

  private static ExchangeException unproven(final String peer, final Throwable cause) {
    return new ExchangeException(
        Reason.AUTHENTICATION,
        Message.of(
                "two executors could not prove to each other that they belong to one"
                    + " application")
            .at(peer)
            .remedy("set the same spark.authenticate for all executors"),
        cause);
  }

  static ExchangeException closed(final String peer, final @Nullable Throwable cause) {
    return new ExchangeException(
        Reason.CLOSED, "This executor's control channel is closed; wanted was " + peer, cause);
  }

  /** Ends all attempts. Idempotent. */
  @Override
  public void close() {
    closed = true;
    threads.shutdownNow();
    // Attempts that had no thread yet are not run any more.
    pending.forEach(result -> result.completeExceptionally(new IOException("closed")));
  }

  /**
   * Thrown if bytes from a connection are not of this protocol, or come too early; the connection
   * is closed.
   */
  static final class ForeignBytesException extends IOException {
    private static final long serialVersionUID = 1L;

    ForeignBytesException(final String message) {
      super(message);
    }
  }

  /**
   * The authentication and encryption of a control channel: its own key, derived from the
   * application's secret, and Spark's settings with the proof always on. Immutable.
   */
  public static final class ControlSecurity implements SecretKeyHolder {
    /** Settings of Spark's transport for control channels alone are spark.zerohop-control.io.*. */
    static final String MODULE = "zerohop-control";

    static final String USER = "zerohop";
    static final String CIPHER = "spark.network.crypto.cipher";
    static final String GCM = "AES/GCM/NoPadding";
    private static final byte[] PURPOSE =
        "zerohop control channel".getBytes(StandardCharsets.US_ASCII);
    private static final String IO = "spark." + MODULE + ".io.";

    private final String key;

    /**
     * @param secret the application's; at least 16 bytes
     */
    ControlSecurity(final byte[] secret) {
      if (secret.length < Hmac.MIN_SECRET_BYTES) {
        throw new IllegalArgumentException("A secret of " + secret.length + " bytes is too short");
      }
      this.key = HexFormat.of().formatHex(Hmac.of(secret, PURPOSE));
    }

    @Override
    public String getSaslUser(final String user) {
      return USER;
    }

    @Override
    public @Nullable String getSecretKey(final String user) {
      return USER.equals(user) ? key : null;
    }

    /** Spark's settings as they hold for control channels. */
    static TransportConf transport(final SparkConf conf, final SecurityManager security) {
      final SparkConf own = conf.clone();
      own.set("spark.network.crypto.enabled", "true");
      own.set("spark.network.crypto.saslFallback", "false");
      // The first version takes a key from the agreement without mixing in what was said.
      own.set("spark.network.crypto.authEngineVersion", "2");
      if (hasSoundGcm(org.apache.spark.package$.MODULE$.SPARK_VERSION())) {
        own.setIfMissing(CIPHER, GCM); // Spark's default, AES/CTR, lets others flip bits.
      }
      own.setIfMissing(IO + "serverThreads", "2");
      own.setIfMissing(IO + "clientThreads", "2");
      own.setIfMissing(IO + "connectionCreationTimeout", "30s");
      return new TransportConf(MODULE, SparkLinks.newRpcConfig(security, own));
    }

    /** Spark has AES/GCM since 4.0, where it breaks the connections of channels like ours. */
    static boolean hasSoundGcm(final String sparkVersion) {
      final String[] parts = sparkVersion.split("[.-]", 3);
      final int major = Integer.parseInt(parts[0]);
      return major > 4 || (major == 4 && Integer.parseInt(parts[1]) >= 1);
    }
  }
}
