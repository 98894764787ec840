package io.zerohop.shuffle.pool;

import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Segment;
import io.zerohop.device.Signal;
import io.zerohop.device.Transitions;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.log.ShuffleCode;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A segment by its id in catalog entries, own or a peer's, with a buffer over all of it. Thread
 * safe as far as the memory is; owns the segment, and whoever made this closes it.
 */
public final class SegmentMemory implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentMemory.class);

  /** The reach of the memory: whether a GPU or any reader can still use it. */
  enum State {
    /** Mapped here, and nobody has asked for more. */
    MAPPED,

    /** Within the GPU's reach, until it is closed. */
    PINNED,

    /** The GPU cannot reach it, and is not asked again. */
    UNREACHABLE,

    /** Closed, or being closed. */
    CLOSED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(
            Map.of(
                MAPPED, Set.of(PINNED, UNREACHABLE, CLOSED),
                PINNED, Set.of(CLOSED),
                UNREACHABLE, Set.of(CLOSED)));
  }

  private final long id;
  private final Segment segment;
  private final UnsafeBuffer buffer;

  /** Written with the monitor held; {@link #pin} reads it without. */
  private volatile State state = State.MAPPED;

  /** What keeps the segment within the GPU's reach, if it was pinned. With the monitor. */
  private @Nullable HostBuffer pinned;

  /** What others hold of the memory and is closed before it, by kind. */
  private final Map<Class<?>, AutoCloseable> attachments = new HashMap<>();

  public SegmentMemory(final long id, final Segment segment) {
    this.id = id;
    this.segment = segment;
    this.buffer = new UnsafeBuffer(segment.address(), Math.toIntExact(segment.bytes()));
  }

  /** The segment's id; never used for another one of the same owner. */
  public long id() {
    return id;
  }

  public Segment segment() {
    return segment;
  }

  /** The whole segment. */
  public UnsafeBuffer buffer() {
    return buffer;
  }

  public long address() {
    return segment.address();
  }

  public int bytes() {
    return buffer.capacity();
  }

  /**
   * Brings a segment of host memory within a GPU's reach, where it stays until it is closed. The
   * first call takes some milliseconds, others nothing. Callers hold something of the segment, so
   * that it is not closed meanwhile.
   *
   * @return false if that cannot be: its bytes have to be copied to where the GPU reaches them
   * @throws IllegalStateException if the segment is closed
   */
  public boolean pin(final Device gpu) {
    return state == State.PINNED || pinFirst(gpu);
  }

  private synchronized boolean pinFirst(final Device gpu) {
    checkOpen();
    if (state == State.MAPPED) {
      try {
        pinned = gpu.pin(address(), segment.bytes());
        become(State.PINNED);
      } catch (final ZerohopException e) {
        if (e.category() == Category.FATAL) {
          throw e;
        }
        become(State.UNREACHABLE);
        ShuffleCode.SEGMENT_NOT_PINNED
            .says(
                "the GPU cannot reach a segment of "
                    + segment.bytes()
                    + " bytes in host memory, so blocks in it are copied first")
            .at(gpu.name())
            .because(e)
            .warn(LOG);
      }
    }
    return state == State.PINNED;
  }

  /**
   * A signal word of host memory for streams of a GPU, too, which this brings within its reach as
   * {@link #pin} does; absent if that cannot be.
   *
   * @param host the device of this memory
   */
  public @Nullable Signal signal(final Device host, final Device gpu, final long offset) {
    return pin(gpu) ? gpu.pinnedSignal(host.signal(segment, offset), address() + offset) : null;
  }

  /**
   * Returns another library's object for this memory, such as a registration: created at the first
   * call, and closed before the memory is unmapped. Callers hold something of the segment.
   *
   * @param kind there is one of each
   * @throws IllegalStateException if the segment is closed
   */
  public synchronized <T extends AutoCloseable> T attach(
      final Class<T> kind, final Supplier<T> maker) {
    checkOpen();
    return kind.cast(attachments.computeIfAbsent(kind, absent -> maker.get()));
  }

  private void checkOpen() {
    if (state == State.CLOSED) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  private void become(final State next) {
    state = State.TRANSITIONS.go(state, next, this);
  }

  /** Closes the segment; what holds its memory, such as the GPU, first. Idempotent. */
  @Override
  public synchronized void close() {
    if (state == State.CLOSED) {
      return;
    }
    become(State.CLOSED);
    try {
      attachments.values().forEach(this::detach);
      attachments.clear();
      if (pinned != null) {
        pinned.close();
      }
    } finally {
      segment.close();
    }
  }

  private void detach(final AutoCloseable attachment) {
    try {
      attachment.close();
    } catch (final Exception e) {
      ShuffleCode.SEGMENT_STILL_HELD
          .says("a segment was unmapped although a library still holds it")
          .at(toString())
          .warn(LOG, e);
    }
  }

  @Override
  public String toString() {
    return "segment " + id;
  }
}
