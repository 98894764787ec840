package io.zerohop.shuffle.pool;

import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Segment;
import io.zerohop.device.Signal;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A segment under the id by which catalog entries name it, own or a peer's, with a buffer over all
 * of it. Thread safe as far as the memory is; owns the segment, and whoever made this closes it.
 */
public final class SegmentMemory implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SegmentMemory.class);

  private final long id;
  private final Segment segment;
  private final UnsafeBuffer buffer;

  /** The segment within the GPU's reach; null until somebody asks for that. */
  private volatile HostBuffer pinned;

  private boolean cannotBePinned;

  /** What others hold of the memory and is closed before it, by kind. */
  private final Map<Class<?>, AutoCloseable> attachments = new HashMap<>();

  private boolean closed;

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
   */
  public boolean pin(final Device gpu) {
    return pinned != null || pinFirst(gpu);
  }

  private synchronized boolean pinFirst(final Device gpu) {
    if (pinned == null && !cannotBePinned) {
      try {
        pinned = gpu.pin(address(), segment.bytes());
      } catch (final ZerohopException e) {
        if (e.category() == Category.FATAL) {
          throw e;
        }
        cannotBePinned = true;
        LOG.warn(
            "{} cannot reach a segment of {} bytes in host memory, which makes blocks there slower"
                + " to read: {}",
            gpu.name(),
            segment.bytes(),
            e.getMessage());
      }
    }
    return pinned != null;
  }

  /**
   * A signal word of host memory for streams of a GPU, too, which this brings within its reach as
   * {@link #pin} does; null if that cannot be.
   *
   * @param host the device of this memory
   */
  public Signal signal(final Device host, final Device gpu, final long offset) {
    return pin(gpu) ? gpu.pinnedSignal(host.signal(segment, offset), address() + offset) : null;
  }

  /**
   * What another library holds of this memory, such as a registration: made at the first call, and
   * closed before the memory is unmapped. Callers hold something of the segment.
   *
   * @param kind there is one of each
   * @throws IllegalStateException if the segment is closed
   */
  public synchronized <T extends AutoCloseable> T attach(
      final Class<T> kind, final Supplier<T> maker) {
    if (closed) {
      throw new IllegalStateException("segment " + id + " is closed");
    }
    return kind.cast(attachments.computeIfAbsent(kind, absent -> maker.get()));
  }

  /** Closes the segment; what holds its memory, such as the GPU, first. */
  @Override
  public synchronized void close() {
    closed = true;
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
      LOG.warn("segment {} is unmapped although something still holds it", id, e);
    }
  }
}
