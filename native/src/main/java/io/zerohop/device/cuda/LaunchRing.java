package io.zerohop.device.cuda;

import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Deadline;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;

/**
 * Pinned memory in which the lists of a stream's launches lie until the launches have ended, used
 * round and round. For one thread at a time.
 */
final class LaunchRing implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMinutes(2);
  private static final long NAP_NANOS = 20_000;
  private static final int ALIGNMENT = 16;

  private final PinnedMemory memory;
  private final ByteBuffer bytes;
  private final int capacity;
  private final IntPredicate ended;
  private final ArrayDeque<Slice> inUse = new ArrayDeque<>();
  private int next;

  /** A part of the ring and the launch that reads it. */
  private record Slice(int offset, int bytes, int launch) {}

  /**
   * A ring.
   *
   * @param ended whether the launch of this number has ended; does not fail
   */
  LaunchRing(final CudaContext context, final int capacity, final IntPredicate ended) {
    this.memory = PinnedMemory.allocate(context, capacity);
    this.bytes = memory.buffer().order(ByteOrder.nativeOrder());
    this.capacity = capacity;
    this.ended = ended;
  }

  /** The most that one launch may take; half the ring, so that the next one can be written. */
  int largest() {
    return capacity / 2;
  }

  /**
   * Takes a part of the ring for a launch, waiting for older launches to end if need be.
   *
   * @return its offset in {@link #bytes}
   */
  int take(final int wanted, final int launch) {
    final int size = aligned(wanted);
    final Deadline deadline = Deadline.in(LIMIT);
    int offset = find(size);
    while (offset < 0) {
      if (deadline.isOver()) {
        throw new WaitException(
            WaitException.Reason.TIMEOUT, "the launches before this one did not end in " + LIMIT);
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new WaitException(
            WaitException.Reason.CANCELLED,
            "the wait for the launches before this one was interrupted");
      }
      LockSupport.parkNanos(NAP_NANOS);
      offset = find(size);
    }
    inUse.add(new Slice(offset, size, launch));
    next = offset + size;
    return offset;
  }

  /** So many bytes as a part of the ring that begins and ends where others may. */
  static int aligned(final int bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  private int find(final int size) {
    while (!inUse.isEmpty() && ended.test(inUse.peek().launch)) {
      inUse.poll();
    }
    if (inUse.isEmpty()) {
      return 0;
    }
    final int oldest = inUse.peek().offset;
    if (next > oldest) {
      return next + size <= capacity ? next : size < oldest ? 0 : -1;
    }
    return next + size < oldest ? next : -1;
  }

  ByteBuffer bytes() {
    return bytes;
  }

  /** The address of an offset, for the host and the GPU alike. */
  long address(final int offset) {
    return memory.address() + offset;
  }

  @Override
  public void close() {
    memory.close();
  }
}
