package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import io.zerohop.device.posix.Threads;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One thread that notices when a peer's end of any link of this process closes. It runs while there
 * are links. Each link it watches holds its socket until the thread has let go of it.
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
    final int[] fds = new int[MAX_LINKS + 1];
    final int[] events = new int[MAX_LINKS + 1];
    List<PeerLink> watched = snapshot(List.of());
    while (watched != null) {
      fds[0] = wakeup;
      events[0] = Sockets.READABLE;
      for (int i = 0; i < watched.size(); i++) {
        fds[i + 1] = watched.get(i).socket().fd();
        events[i + 1] = Sockets.GONE;
      }
      poll(fds, events, watched.size() + 1);
      if (events[0] != 0) {
        Sockets.drain(wakeup);
      }
      final List<PeerLink> gone = new ArrayList<>();
      for (int i = 0; i < watched.size(); i++) {
        if (events[i + 1] != 0) {
          gone.add(watched.get(i));
        }
      }
      gone.forEach(PeerWatch::end);
      watched = snapshot(gone);
    }
  }

  /** A link that cannot be watched is no use: if the poll fails, all count as gone. */
  private static void poll(final int[] fds, final int[] events, final int count) {
    try {
      Sockets.poll(fds, events, count, LONGEST_POLL_MILLIS);
    } catch (final PosixException e) {
      DeviceCode.LINKS_UNWATCHED
          .says("cannot watch connections to peers; closed all of them")
          .because(e)
          .remedy("raise 'ulimit -n'")
          .error(LOG, e);
      Arrays.fill(events, 0, count, Sockets.GONE);
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
    }
    link.socket().release();
  }

  /** The links to watch next; absent, and the thread must end, when there are none. */
  private synchronized @Nullable List<PeerLink> snapshot(final List<PeerLink> gone) {
    links.removeAll(gone);
    if (links.isEmpty()) {
      Descriptor.close(wakeup);
      wakeup = -1;
      return null;
    }
    return List.copyOf(links);
  }
}
