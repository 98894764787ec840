package io.zerohop.device.cuda;

import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.WaitException;
import io.zerohop.device.cuda.CudaDevice.DeviceWord;
import io.zerohop.device.cuda.KernelArguments.GatherArguments;
import io.zerohop.device.posix.Deadline;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The signals that a stream's launches wait for and raise: their words in the ring, and their names
 * for when a wait fails. Behind a wait a launch is conditional until the stream was synchronized:
 * it does nothing if the wait has failed. For one thread at a time.
 */
final class LaunchSignals {
  /** Bytes of one signal in a launch's list: its address and an epoch. */
  static final int BYTES = 16;

  private final LaunchRing ring;
  private final GatherArguments arguments;
  private final Map<Integer, List<SignalEpoch>> awaited = new HashMap<>();
  private boolean conditional;
  private Duration lastLimit = Duration.ZERO;

  /**
   * @param ring where the words go
   * @param arguments told where they are
   */
  LaunchSignals(final LaunchRing ring, final GatherArguments arguments) {
    this.ring = ring;
    this.arguments = arguments;
  }

  /** Whether a launch now stands behind a wait. */
  boolean conditional() {
    return conditional;
  }

  /**
   * Writes the signals of a launch.
   *
   * @param at where in the ring
   * @param after what it waits for
   * @param then what it raises in the end
   */
  void write(
      final int launch,
      final int at,
      final List<SignalEpoch> after,
      final List<SignalEpoch> then,
      final Duration limit) {
    final int raisesAt = writeWords(after, at);
    writeWords(then, raisesAt);
    arguments.waits(ring.address(at), after.size(), Kernels.limitNanos(limit));
    arguments.raises(ring.address(raisesAt), then.size());
    if (!after.isEmpty()) {
      awaited.put(launch, List.copyOf(after));
      conditional = true;
      lastLimit = limit;
    }
  }

  private int writeWords(final List<SignalEpoch> signals, final int from) {
    int at = from;
    for (final SignalEpoch next : signals) {
      ring.bytes().putLong(at, addressOf(next.signal()));
      ring.bytes().putInt(at + Long.BYTES, next.epoch());
      at += BYTES;
    }
    return at;
  }

  /** Where the GPU finds a signal. */
  static long addressOf(final Signal signal) {
    if (signal instanceof DeviceWord word) {
      return word.address();
    }
    throw new IllegalArgumentException("not a signal that a CUDA device reaches: " + signal);
  }

  /** Takes the failure of a wait, if there was one; the stream is idle, and begins anew. */
  @Nullable WaitException takeFailure(final StreamState state, final String stream) {
    conditional = false;
    final WaitException failure = state.takeFailure(stream, lastLimit, this::name);
    awaited.clear();
    return failure;
  }

  private String name(final int launch, final int index) {
    final List<SignalEpoch> signals = awaited.get(launch);
    return signals == null || index >= signals.size()
        ? "a signal"
        : "epoch " + signals.get(index).epoch() + " of " + signals.get(index).signal();
  }

  /**
   * The results of a stream's launches, in pinned memory that the kernels write and the host reads.
   * The device writes {@code failure} behind the other words; the host reads it first.
   */
  static final class StreamState implements AutoCloseable {
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

  /**
   * Pinned memory in which the lists of a stream's launches lie until the launches have ended, used
   * round and round. For one thread at a time.
   */
  static final class LaunchRing implements AutoCloseable {
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
}
