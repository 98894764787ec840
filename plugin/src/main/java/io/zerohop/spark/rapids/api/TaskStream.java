package io.zerohop.spark.rapids.api;

import io.zerohop.device.CopyStream;
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

  public CopyStream get() {
    if (stream == null) {
      stream = opener.get();
    }
    return stream;
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
