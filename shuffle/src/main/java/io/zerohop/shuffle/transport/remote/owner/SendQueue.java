package io.zerohop.shuffle.transport.remote.owner;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A queue of requests to be sent to readers, with a limit on concurrent ones. Each holds copies of
 * small blocks, and of those in GPU memory, until the reader has them. Readers take turns, so that
 * one with many requests keeps nobody waiting for more than one of its own; all together have no
 * more bytes than a limit, but for one alone that has more; and none may have all places or bytes,
 * but by one request, so that one that takes nothing does not stop the others (two such hold all
 * places, until their leases end). Each step costs the same for any number of readers. Thread safe.
 */
final class SendQueue {
  private static final Logger LOG = LoggerFactory.getLogger(SendQueue.class);
  static final int AT_ONCE = 8;

  /** Places that one reader may have: two are left for others. */
  static final int MAX_OF_ONE = 6;

  private final Executor executor;
  private final long mostBytes;
  private final long mostBytesOfOne;

  /** By reader; those that have nothing here are not in it. */
  private final Map<Object, Line> lines = new HashMap<>();

  /** Lines with a request that may begin now, in the order of their turns. */
  private final Deque<Line> turns = new ArrayDeque<>();

  private int underWay;
  private long bytes;

  /** A request to send. */
  private record Request(long bytes, Runnable begin) {}

  /** One reader's requests. */
  private final class Line {
    private final Deque<Request> waiting = new ArrayDeque<>();
    private int underWay;
    private long bytes;

    boolean mayBegin() {
      return !waiting.isEmpty()
          && underWay < MAX_OF_ONE
          && (underWay == 0 || waiting.peek().bytes() <= mostBytesOfOne - bytes);
    }
  }

  /**
   * @param mostBytes of all that are under way
   */
  SendQueue(final Executor executor, final long mostBytes) {
    this.executor = executor;
    this.mostBytes = mostBytes;
    this.mostBytesOfOne = mostBytes / AT_ONCE * MAX_OF_ONE;
  }

  /**
   * Begins a request when it is its turn; the caller reports its end by {@link #ended}.
   *
   * @param reader whom it is for
   * @param size in bytes
   */
  void submit(final Object reader, final long size, final Runnable begin) {
    synchronized (this) {
      final Line line = lines.computeIfAbsent(reader, first -> new Line());
      final boolean hadTurn = line.mayBegin();
      line.waiting.add(new Request(size, begin));
      if (!hadTurn && line.mayBegin()) {
        turns.add(line);
      }
    }
    beginNext();
  }

  /** Ends a request of a reader, with its bytes. */
  void ended(final Object reader, final long size) {
    synchronized (this) {
      underWay--;
      bytes -= size;
      final Line line = lines.get(reader);
      final boolean hadTurn = line.mayBegin();
      line.underWay--;
      line.bytes -= size;
      if (!hadTurn && line.mayBegin()) {
        turns.add(line);
      }
      if (line.underWay == 0 && line.waiting.isEmpty()) {
        lines.remove(reader);
      }
    }
    // What has ended may have kept several that are smaller from beginning.
    boolean begun = true;
    while (begun) {
      begun = beginNext();
    }
  }

  /** Bytes that are under way. */
  synchronized long bytes() {
    return bytes;
  }

  /** Readers that have something here. */
  synchronized int readers() {
    return lines.size();
  }

  /** Begins the one whose turn it is, unless it has to wait; says whether it did. */
  private boolean beginNext() {
    final Request next;
    synchronized (this) {
      final Line line = underWay == AT_ONCE ? null : turns.peek();
      if (line == null || (underWay > 0 && line.waiting.peek().bytes() > mostBytes - bytes)) {
        return false;
      }
      turns.poll();
      next = line.waiting.poll();
      underWay++;
      line.underWay++;
      line.bytes += next.bytes();
      bytes += next.bytes();
      if (line.mayBegin()) {
        turns.add(line);
      }
    }
    try {
      executor.execute(next.begin());
    } catch (final RejectedExecutionException e) {
      // This executor is shutting down: the connection that an answer would go by is closed.
      LOG.debug("nothing more is sent", e);
    }
    return true;
  }
}
