package io.zerohop.device;

import java.util.ArrayDeque;
import java.util.Deque;
import org.agrona.LangUtil;

/**
 * Rolls back what was begun unless it is completed: the end of its {@code try} block closes what it
 * was given, the last first, unless {@link #done} or {@link #keep} was called. For one thread.
 *
 * <p>What the block failed with is thrown, and a failure to undo is suppressed. So this is not for
 * undoing whose failure says more than its cause, as that copies never end.
 */
public final class Undo implements AutoCloseable {
  private final Deque<AutoCloseable> begun = new ArrayDeque<>(2);

  /**
   * @param first what was begun already: something to close, or a method that reverts a step
   */
  public Undo(final AutoCloseable... first) {
    for (final AutoCloseable each : first) {
      begun.push(each);
    }
  }

  /** Adds what was begun after the others; it is closed before them. */
  public void add(final AutoCloseable next) {
    begun.push(next);
  }

  /** Keeps everything: the block is complete. */
  public void done() {
    begun.clear();
  }

  /** Keeps everything, and returns the block's result. */
  public <T> T keep(final T result) {
    begun.clear();
    return result;
  }

  /** Closes what is not kept. All of it, whatever fails; the first failure has the others. */
  @Override
  public void close() {
    Throwable first = null;
    while (!begun.isEmpty()) {
      try {
        begun.pop().close();
      } catch (final Throwable e) {
        if (first == null) {
          first = e;
        } else if (first != e) {
          first.addSuppressed(e);
        }
      }
    }
    if (first != null) {
      LangUtil.rethrowUnchecked(first);
    }
  }
}
