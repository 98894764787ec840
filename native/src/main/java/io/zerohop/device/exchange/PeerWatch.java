package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Sockets;
import io.zerohop.device.posix.Threads;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One thread that notices when a peer's end of any link of this process closes. It runs while there
 * are links. Each link it watches holds its socket until the thread has let go of it. A link that
 * cannot be watched is no use: if the thread fails, all of them end.
 */
final class PeerWatch {
  private static final Logger LOG = LoggerFactory.getLogger(PeerWatch.class);
  private static final int LONGEST_POLL_MILLIS = 10_000;
  private static final int MAX_LINKS = Sockets.MAX_POLL - 1;
  private static final PeerWatch SHARED = new PeerWatch();

  private final List<PeerLink> links = new ArrayList<>();
  private int wakeup = -1;

  private PeerWatch() {}

  static PeerWatch shared() {
    return SHARED;
  }

  /**
   * Watches a link until its socket is shut down from either side.
   *
   * @throws ExchangeException (BUSY) if it cannot: there are too many links, or no thread
   */
  synchronized void watch(final PeerLink link) {
    if (links.size() >= MAX_LINKS) {
      throw new ExchangeException(
          ExchangeException.Reason.BUSY, "this process has " + MAX_LINKS + " peers already");
    }
    if (wakeup < 0) {
      start();
    }
    links.add(link);
    Sockets.wakeup(wakeup);
  }

  private void start() {
    wakeup = Sockets.newWakeup();
    try {
      Threads.daemon(this::run, "zerohop-peer-watch").start();
    } catch (final ZerohopException e) {
      Descriptor.close(wakeup);
      wakeup = -1; // The next link tries again.
      throw new ExchangeException(ExchangeException.Reason.BUSY, Message.of(e), e);
    }
  }

  private void run() {
    try {
      watchAll();
    } catch (final RuntimeException | Error e) {
      endAll();
      DeviceCode.LINKS_UNWATCHED
          .says("cannot watch connections to peers; closed all of them")
          .because(e)
          .remedy("raise 'ulimit -n' if descriptors are the reason, else report this")
          .error(LOG, e);
    }
  }

  private void watchAll() {
    final int[] fds = new int[MAX_LINKS + 1];
    final int[] events = new int[MAX_LINKS + 1];
    List<PeerLink> watched = snapshot();
    while (watched != null) {
      fds[0] = wakeup;
      events[0] = Sockets.READABLE;
      for (int i = 0; i < watched.size(); i++) {
        fds[i + 1] = watched.get(i).socket().fd();
        events[i + 1] = Sockets.GONE;
      }
      Sockets.poll(fds, events, watched.size() + 1, LONGEST_POLL_MILLIS);
      if (events[0] != 0) {
        Sockets.drain(wakeup);
      }
      for (int i = 0; i < watched.size(); i++) {
        if (events[i + 1] != 0) {
          forget(watched.get(i));
          end(watched.get(i));
        }
      }
      watched = snapshot();
    }
  }

  /** Needs no memory, as far as it can: there may be none. */
  private void endAll() {
    for (PeerLink link = takeLast(); link != null; link = takeLast()) {
      try {
        end(link);
      } catch (final Error e) {
        LOG.debug("a connection ended, and a callback of its failed", e);
      }
    }
  }

  private static void end(final PeerLink link) {
    try {
      link.close();
    } catch (final RuntimeException e) {
      DeviceCode.LINK_END_FAILED
          .says("could not close a connection cleanly")
          .at(link.toString())
          .warn(LOG, e);
    } finally {
      link.socket().release();
    }
  }

  private synchronized void forget(final PeerLink link) {
    links.remove(link);
  }

  /** A link that is not watched any more; absent, and the thread must end, when there are none. */
  private synchronized @Nullable PeerLink takeLast() {
    if (links.isEmpty()) {
      unwatch();
      return null;
    }
    return links.remove(links.size() - 1);
  }

  /** The links to watch next; absent, and the thread must end, when there are none. */
  private synchronized @Nullable List<PeerLink> snapshot() {
    if (links.isEmpty()) {
      unwatch();
      return null;
    }
    return List.copyOf(links);
  }

  /** With the monitor held. */
  private void unwatch() {
    Descriptor.close(wakeup);
    wakeup = -1; // The next link starts another thread.
  }
}
