package io.zerohop.device.exchange;

import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.PosixException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;

/** A process that has as many descriptors as it may when a segment comes. */
public final class FullTablePeer {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private FullTablePeer() {}

  /**
   * Arguments: a socket, ids of a segment that is withheld and of one that is not, and the size of
   * one that is lent.
   */
  public static void main(final String[] arguments) throws InterruptedException {
    final long withheld = Long.parseLong(arguments[1]);
    final long segment = Long.parseLong(arguments[2]);
    final long bytes = Long.parseLong(arguments[3]);
    try (PeerLink link =
        PeerLink.connect(Path.of(arguments[0]), "full", "server", SegmentTable.SECRET, LIMIT)) {
      // Classes are loaded by descriptors, so all that is needed later is used before.
      System.out.println(
          fetch(link, withheld) + " " + fetch(link, segment) + " " + borrow(link, bytes));
      final Deque<Integer> taken = new ArrayDeque<>();
      fill(taken);
      System.out.println(fetch(link, segment) + " " + fetch(link, segment) + " " + link.alive());
      System.out.println(borrow(link, bytes));
      taken.forEach(Descriptor::close);
      System.out.println(fetch(link, segment));
    }
  }

  /**
   * Takes all descriptors, those too that the JVM's own threads give back a moment later: they open
   * files under /proc and of the control group now and then.
   */
  private static void fill(final Deque<Integer> taken) throws InterruptedException {
    int before;
    do {
      before = taken.size();
      try {
        while (true) {
          taken.add(Descriptor.duplicate(0));
        }
      } catch (final PosixException full) {
        Thread.sleep(100);
      }
    } while (taken.size() > before);
  }

  /** Gives back what it gets. */
  private static String borrow(final PeerLink link, final long bytes) {
    try {
      final PeerLink.Loan loan = link.borrow(bytes, LIMIT);
      loan.handle().close();
      link.giveBack(loan.segmentId(), LIMIT);
      return "borrowed";
    } catch (final ExchangeException e) {
      return e.reason().name();
    }
  }

  private static String fetch(final PeerLink link, final long segment) {
    try {
      link.fetch(segment, LIMIT).close();
      return "fetched";
    } catch (final ExchangeException e) {
      return e.reason().name();
    }
  }
}
