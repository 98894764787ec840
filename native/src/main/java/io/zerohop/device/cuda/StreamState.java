package io.zerohop.device.cuda;

import io.zerohop.device.Signal;
import io.zerohop.device.WaitException;
import java.time.Duration;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The results of a stream's launches, in pinned memory that the kernels write and the host reads.
 * The device writes {@code failure} behind the other words; the host reads it first.
 */
final class StreamState implements AutoCloseable {
  private static final int FAILURE = 0;
  private static final int SIGNAL = 4;
  private static final int LAUNCH = 8;
  private static final int ABORT = 12;
  private static final int COMPLETED = 16;
  private static final int BYTES = 32;

  private static final int TIMED_OUT = 1;
  private static final int ABORTED = 2;

  private final PinnedMemory memory;
  private final UnsafeBuffer words;

  StreamState(final CudaContext context) {
    memory = PinnedMemory.allocate(context, BYTES);
    words = new UnsafeBuffer(memory.address(), BYTES);
  }

  long address() {
    return memory.address();
  }

  /** Ends every wait of the stream, now and later. */
  void abort() {
    words.putIntVolatile(ABORT, 1);
  }

  /** Whether the launch of this number has ended. */
  boolean ended(final int launch) {
    return Signal.atLeast(words.getIntVolatile(COMPLETED), launch);
  }

  /** Takes the failure of a wait, if there was one; the stream must be idle. */
  @Nullable WaitException takeFailure(
      final String stream, final Duration limit, final Waits waits) {
    final int failure = words.getIntVolatile(FAILURE);
    if (failure == 0) {
      return null;
    }
    final String signal = waits.name(words.getInt(LAUNCH), words.getInt(SIGNAL));
    words.putIntVolatile(FAILURE, 0);
    final WaitException.Reason reason =
        failure == TIMED_OUT
            ? WaitException.Reason.TIMEOUT
            : failure == ABORTED ? WaitException.Reason.ABORTED : WaitException.Reason.CANCELLED;
    final String what =
        switch (reason) {
          case TIMEOUT -> "was not raised within " + limit;
          case ABORTED -> "was aborted by its owner or by this executor";
          case CANCELLED -> "was still awaited when the stream was closed";
        };
    return new WaitException(reason, stream + ": " + signal + " " + what);
  }

  /** Names the signals that a launch waited for. */
  @FunctionalInterface
  interface Waits {
    String name(int launch, int index);
  }

  @Override
  public void close() {
    memory.close();
  }
}
