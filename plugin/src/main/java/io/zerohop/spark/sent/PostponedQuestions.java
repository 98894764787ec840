package io.zerohop.spark.sent;

import io.zerohop.device.posix.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;

/**
 * Questions of executors that the driver could not be asked about yet. Only a few are kept, since
 * anyone may make up names: the oldest make room for new ones. Thread safe.
 */
final class PostponedQuestions {
  static final int MAX = 256;

  /** Of all together. An introduction, with which a reader begins, has some dozens. */
  static final int MAX_BYTES = 1 << 20;

  private final Clock clock;
  private final Deque<Postponed> waiting = new ArrayDeque<>();
  private int bytes;

  /**
   * One of them.
   *
   * @param due when it is tried again
   * @param again tries it
   */
  private record Postponed(long due, int bytes, Runnable again) {}

  PostponedQuestions(final Clock clock) {
    this.clock = clock;
  }

  /** Keeps one, unless it is longer than all may be. */
  synchronized void add(final long due, final int length, final Runnable again) {
    if (length > MAX_BYTES) {
      return;
    }
    waiting.add(new Postponed(due, length, again));
    bytes += length;
    while (waiting.size() > MAX || bytes > MAX_BYTES) {
      bytes -= waiting.remove().bytes();
    }
  }

  /** Takes out those that are to be tried now. */
  synchronized List<Runnable> due() {
    final List<Runnable> due = new ArrayList<>();
    for (final Iterator<Postponed> all = waiting.iterator(); all.hasNext(); ) {
      final Postponed next = all.next();
      if (clock.isOver(next.due())) {
        all.remove();
        bytes -= next.bytes();
        due.add(next.again());
      }
    }
    return due;
  }

  /** Drops all. */
  synchronized void clear() {
    waiting.clear();
    bytes = 0;
  }
}
