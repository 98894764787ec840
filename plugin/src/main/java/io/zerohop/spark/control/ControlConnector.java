package io.zerohop.spark.control;

import io.netty.channel.ConnectTimeoutException;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Threads;
import java.io.IOException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.nio.channels.UnresolvedAddressException;
import java.time.Duration;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientFactory;
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
    pending.add(result);
    try {
      final Future<?> attempt = start(host, port, peer, result);
      return await(peer, limit, attempt, result);
    } finally {
      pending.remove(result);
    }
  }

  private TransportClient await(
      final String peer,
      final Duration limit,
      final Future<?> attempt,
      final CompletableFuture<TransportClient> result) {
    try {
      return result.get(limit.toNanos(), TimeUnit.NANOSECONDS);
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
    }
  }

  private Future<?> start(
      final String host,
      final int port,
      final String peer,
      final CompletableFuture<TransportClient> result) {
    try {
      return threads.submit(() -> run(host, port, result));
    } catch (final RejectedExecutionException e) {
      throw closed(peer, e);
    } catch (final ZerohopException e) {
      throw new ExchangeException(Reason.BUSY, Message.of(e), e); // There is no thread for it.
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
      if (cause instanceof TimeoutException || cause instanceof ConnectTimeoutException) {
        return new ExchangeException(
            Reason.TIMEOUT, peer + " has not accepted a control connection in time", failure);
      }
      if (cause instanceof ConnectException
          || cause instanceof NoRouteToHostException
          || cause instanceof UnresolvedAddressException) {
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
}
