package io.zerohop.device.host;

import io.zerohop.device.Signal;
import io.zerohop.device.WaitException;
import io.zerohop.device.WaitException.Reason;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Futex;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A signal word that waiters sleep on with a futex.
 *
 * <p>A raise always makes the wake call, even if nobody sleeps: the layout has no place for a count
 * of sleepers, and one kept elsewhere would go wrong when a sleeper is killed. A waiter that misses
 * an abort between its look and its sleep sleeps one slice at most.
 */
final class HostSignal implements Signal {
  private static final int EPOCH_OFFSET = 0;
  private static final int ABORT_OFFSET = 4;
  private static final int SPINS = 200;
  private static final long SLICE_NANOS = 5_000_000;

  private final HostSegment segment;
  private final long offset;
  private final UnsafeBuffer words;

  HostSignal(final HostSegment segment, final long offset) {
    segment.checkOpen();
    if (offset < 0 || offset % BYTES != 0 || offset > segment.bytes() - BYTES) {
      throw new IllegalArgumentException(
          "signal at offset " + offset + " of " + segment + ": not aligned or outside");
    }
    this.segment = segment;
    this.offset = offset;
    this.words = new UnsafeBuffer(segment.address() + offset, BYTES);
  }

  @Override
  public int epoch() {
    segment.checkOpen();
    return words.getIntVolatile(EPOCH_OFFSET);
  }

  @Override
  public void raise(final int epoch) {
    segment.checkWritable();
    int current;
    do {
      current = epoch();
      if (Signal.atLeast(current, epoch)) {
        return;
      }
    } while (!words.compareAndSetInt(EPOCH_OFFSET, current, epoch));
    wake();
  }

  @Override
  public void abort(final int reason) {
    segment.checkWritable();
    words.putIntVolatile(ABORT_OFFSET, reason);
    wake();
  }

  @Override
  public int aborted() {
    segment.checkOpen();
    return words.getIntVolatile(ABORT_OFFSET);
  }

  @Override
  public void await(final int epoch, final Duration limit, final BooleanSupplier cancelled) {
    for (int spin = 0; spin < SPINS; spin++) {
      if (reached(epoch)) {
        return;
      }
      Thread.onSpinWait();
    }
    final Deadline deadline = Deadline.in(limit);
    while (true) {
      final int current = epoch();
      if (Signal.atLeast(current, epoch)) {
        return;
      }
      checkGoesOn(epoch, current, deadline, limit, cancelled);
      Futex.await(
          words.addressOffset() + EPOCH_OFFSET,
          current,
          Math.min(SLICE_NANOS, deadline.remainingNanos()));
    }
  }

  private void checkGoesOn(
      final int epoch,
      final int current,
      final Deadline deadline,
      final Duration limit,
      final BooleanSupplier cancelled) {
    final int reason = aborted();
    if (reason != 0) {
      throw failure(Reason.ABORTED, epoch, current, "was aborted with reason " + reason);
    }
    if (cancelled.getAsBoolean()) {
      throw failure(Reason.CANCELLED, epoch, current, "was cancelled");
    }
    if (Thread.currentThread().isInterrupted()) {
      throw failure(Reason.CANCELLED, epoch, current, "was interrupted");
    }
    if (deadline.isOver()) {
      throw failure(Reason.TIMEOUT, epoch, current, "took longer than " + limit);
    }
  }

  private WaitException failure(
      final Reason reason, final int epoch, final int current, final String what) {
    return new WaitException(
        reason,
        "host: the wait for epoch "
            + epoch
            + " at offset "
            + offset
            + " of "
            + segment
            + " "
            + what
            + "; it is at "
            + current);
  }

  @Override
  public void wake() {
    Futex.wake(words.addressOffset() + EPOCH_OFFSET);
  }
}
