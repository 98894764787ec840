package io.zerohop.shuffle.transport.ucx.owner;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What is to be sent to readers, a few requests at a time: each holds copies of small blocks, and
 * of those in GPU memory, until the reader has them. Thread safe.
 */
final class SendQueue {
  private static final Logger LOG = LoggerFactory.getLogger(SendQueue.class);
  private static final int AT_ONCE = 8;

  private final Executor executor;
  private final Deque<Runnable> waiting = new ArrayDeque<>();
  private int underWay;

  SendQueue(final Executor executor) {
    this.executor = executor;
  }

  /** Has it begun when it is its turn; whoever begun it says when it has {@link #ended}. */
  void submit(final Runnable begin) {
    synchronized (this) {
      waiting.add(begin);
    }
    beginNext();
  }

  /** What was begun has ended. */
  void ended() {
    synchronized (this) {
      underWay--;
    }
    beginNext();
  }

  private void beginNext() {
    final Runnable next;
    synchronized (this) {
      if (underWay == AT_ONCE || waiting.isEmpty()) {
        return;
      }
      underWay++;
      next = waiting.poll();
    }
    try {
      executor.execute(next);
    } catch (final RejectedExecutionException e) {
      // This executor is shutting down: the connection that an answer would go by is closed.
      LOG.debug("nothing more is sent", e);
    }
  }
}
