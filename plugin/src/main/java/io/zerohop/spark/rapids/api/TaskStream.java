package io.zerohop.spark.rapids.api;

import io.zerohop.device.CopyStream;
import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A stream for a map task's small GPU work beside its copies, opened at the first need. For one
 * task's thread.
 */
public final class TaskStream implements AutoCloseable {
  private final Supplier<CopyStream> opener;

  /** Absent until the first need, and after a {@link #close}. */
  private @Nullable CopyStream stream;

  /** Why it could not be closed: what it uses must never be freed. */
  private @Nullable RuntimeException failure;

  /**
   * @param opener gives a stream in the order of what the calling thread does on the GPU
   */
  public TaskStream(final Supplier<CopyStream> opener) {
    this.opener = opener;
  }

  /** Fails once a stream could not be closed: no other one waits for what is under way there. */
  public CopyStream get() {
    if (failure != null) {
      throw failure;
    }
    if (stream == null) {
      stream = opener.get();
    }
    return stream;
  }

  /**
   * Waits until everything submitted so far has happened.
   *
   * @throws io.zerohop.device.ZerohopException as {@link #run}
   */
  public void synchronize(final Duration limit) {
    run(by -> by.synchronize(limit));
  }

  /**
   * Runs a step that waits for the stream. If it fails, the stream is closed at once and not with
   * the task: Spark does not end an executor for what a task's end throws.
   *
   * @throws io.zerohop.device.ZerohopException (FATAL) if the step fails and the stream does not
   *     end
   */
  public void run(final Consumer<CopyStream> step) {
    try {
      step.accept(get());
    } catch (final RuntimeException | Error e) {
      try {
        close();
      } catch (final RuntimeException unended) {
        if (unended != e) {
          unended.addSuppressed(e);
        }
        throw unended;
      }
      throw e;
    }
  }

  /**
   * Gives the stream back, after what is under way on it has ended; the next {@link #get} takes one
   * again. Memory that it uses is freed after this, and not if this fails, now or before.
   */
  @Override
  public void close() {
    if (failure != null) {
      throw failure;
    }
    if (stream != null) {
      final CopyStream last = stream;
      stream = null;
      try {
        last.close();
      } catch (final RuntimeException e) {
        failure = e;
        throw e;
      }
    }
  }
}
