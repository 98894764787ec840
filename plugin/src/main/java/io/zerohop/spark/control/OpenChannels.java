package io.zerohop.spark.control;

import io.zerohop.spark.log.SparkCode;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.util.TransportFrameDecoder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The connections of one channel, in or out, from when they stand until all have been told of their
 * end. Puts the guards into each. Thread safe.
 */
final class OpenChannels {
  private static final Logger LOG = LoggerFactory.getLogger(OpenChannels.class);

  /** After so many addresses strangers are only counted, so that they cannot fill the log. */
  private static final int MOST_NAMED = 100;

  private final ControlLimits limits;
  private final boolean answering;
  private final Set<TransportClient> open = new HashSet<>();

  /** Those of them that had proved nothing when they were looked at last. */
  private final Set<TransportClient> unproven = new HashSet<>();

  private final Set<String> strangersNamed = new HashSet<>();
  private long strangers;
  private boolean closed;

  /**
   * @param answering whether the other ends ask
   */
  OpenChannels(final ControlLimits limits, final boolean answering) {
    this.limits = limits;
    this.answering = answering;
  }

  /**
   * A connection stands, and nothing has been read from it. Called on its thread; closes it if
   * there is no place for it.
   */
  void opened(final TransportClient client) {
    boolean guarded = false;
    try {
      guarded = add(client) && guard(client);
    } finally {
      if (!guarded) {
        client.getChannel().close();
      }
    }
  }

  private synchronized boolean add(final TransportClient client) {
    if (closed || (answering && isFull())) {
      return false;
    }
    if (answering) {
      unproven.add(client);
    }
    return open.add(client);
  }

  /** Looks at as many as may be unproven, and at none that was found to be proven before. */
  private boolean isFull() {
    if (unproven.size() >= limits.unproven()) {
      unproven.removeIf(client -> client.getClientId() != null);
    }
    return unproven.size() >= limits.unproven();
  }

  private boolean guard(final TransportClient client) {
    final int body = answering ? limits.questionBytes() : limits.answerBytes();
    client
        .getChannel()
        .pipeline()
        .addBefore(
            TransportFrameDecoder.HANDLER_NAME,
            "strangerGuard",
            new StrangerGuard(client, limits.strangerFrame(), body + ControlLimits.FRAME_HEADER))
        .addAfter(
            TransportFrameDecoder.HANDLER_NAME, "frameCheck", new FrameCheck(client, answering));
    client
        .getChannel()
        .eventLoop()
        .schedule(() -> closeUnproven(client), limits.proof().toMillis(), TimeUnit.MILLISECONDS);
    return true;
  }

  private static void closeUnproven(final TransportClient client) {
    if (client.getClientId() == null) {
      client.getChannel().close();
    }
  }

  /** A connection has ended, and all who wanted to know have been told. */
  void ended(final TransportClient client) {
    final String stranger = leave(client);
    if (stranger != null) {
      SparkCode.STRANGER.warn(
          LOG,
          "a connection from {} to this executor's control port ended before it had proved to"
              + " belong to the application (logged once for each address; the metric"
              + " zerohop.strangers counts all)",
          stranger);
    }
  }

  /** The address of a stranger that was not named before; else null. */
  private synchronized String leave(final TransportClient client) {
    open.remove(client);
    unproven.remove(client);
    notifyAll();
    if (!answering || closed || client.getClientId() != null) {
      return null;
    }
    strangers++;
    final String address = ((InetSocketAddress) client.getSocketAddress()).getHostString();
    return strangersNamed.size() < MOST_NAMED && strangersNamed.add(address) ? address : null;
  }

  /** Connections that ended before they had proved anything, since the start. */
  synchronized long strangers() {
    return strangers;
  }

  /** Lets no more in, closes what is open and waits until all have ended, up to the limit. */
  void close() {
    for (final TransportClient client : refuse()) {
      client.getChannel().close();
    }
    awaitEnds(limits.close());
  }

  private synchronized List<TransportClient> refuse() {
    closed = true;
    return List.copyOf(open);
  }

  private synchronized void awaitEnds(final Duration limit) {
    final long start = System.nanoTime();
    long left = limit.toNanos();
    boolean interrupted = false;
    while (!open.isEmpty() && left > 0 && !interrupted) {
      try {
        TimeUnit.NANOSECONDS.timedWait(this, Math.max(left, 1_000_000));
      } catch (final InterruptedException e) {
        interrupted = true;
      }
      left = limit.toNanos() - (System.nanoTime() - start);
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
