package io.zerohop.device.host;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Message;
import io.zerohop.device.OpenResources;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Signal;
import io.zerohop.device.WaitException;
import io.zerohop.device.WaitException.Reason;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.PosixException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Shared host memory as a {@link Device}. Addresses are addresses of this process.
 *
 * <p>Segments are memfds: every page is reserved before {@link #allocate} returns, and their size
 * is sealed, so that no peer can make a reader fault. What peers may only read is sealed against
 * new writers too, so that not even a descriptor that is opened again lets anybody write. Memory
 * lives while any process holds a descriptor or a mapping of it, also after its owner was killed.
 * Signals are words that waiters sleep on with a futex, and the processor makes the copies.
 */
public final class HostDevice implements Device {
  /** Largest segment in bytes: what an int can index, in whole pages. */
  public static final long MAX_SEGMENT_BYTES = (1L << 31) - 4096;

  private final OpenResources open = new OpenResources("host");
  private final AtomicLong nextId = new AtomicLong();
  private final long pageBytes;

  /**
   * Opens the device.
   *
   * @throws ZerohopException (FALLBACK) where the native library does not run
   */
  public HostDevice() {
    NativeLibrary.require();
    pageBytes = Memory.pageSize();
  }

  @Override
  public String name() {
    return "host";
  }

  @Override
  public long granularity() {
    return pageBytes;
  }

  @Override
  public Segment allocate(final long bytes, final PeerAccess access) {
    open.checkOpen();
    if (bytes <= 0) {
      throw new IllegalArgumentException("segment of " + bytes + " bytes");
    }
    if (bytes > MAX_SEGMENT_BYTES) {
      throw new DeviceMemoryException(
          Message.of(
                  "a segment of "
                      + bytes
                      + " bytes was requested, the maximum is "
                      + MAX_SEGMENT_BYTES)
              .at("host")
              .remedy("allocate several"),
          bytes,
          null);
    }
    final long rounded = (bytes + pageBytes - 1) / pageBytes * pageBytes;
    final String name = "zerohop-" + nextId.incrementAndGet();
    return open.add(HostSegment.allocate(open::remove, name, rounded, access));
  }

  @Override
  public Segment map(final SegmentHandle handle, final String owner, final PeerAccess access) {
    try (handle) {
      checkTrusted(owner, handle);
      final String name = "mapped-" + nextId.incrementAndGet() + " of " + owner;
      return open.add(HostSegment.map(open::remove, name, handle.fd(), handle.bytes(), access));
    } catch (final PosixException e) {
      throw refused(owner, e.message().happened(), e);
    }
  }

  @Override
  public Segment borrow(final SegmentHandle handle, final String lender) {
    try (handle) {
      checkTrusted(lender, handle);
      final String name = "borrowed-" + nextId.incrementAndGet() + " from " + lender;
      return open.add(HostSegment.borrow(open::remove, name, handle.fd(), handle.bytes()));
    } catch (final PosixException e) {
      throw refused(lender, e.message().happened(), e);
    }
  }

  private void checkTrusted(final String owner, final SegmentHandle handle) {
    open.checkOpen();
    if (handle.kind() != SegmentHandle.Kind.POSIX_FD) {
      throw refused(owner, "a handle of kind " + handle.kind() + " is not host memory", null);
    }
    final FileStatus status = Descriptor.status(handle.fd());
    final long bytes = handle.bytes();
    if (!status.isRegular() || !Memory.isSealed(handle.fd())) {
      throw refused(owner, "its descriptor is not sealed shared memory", null);
    }
    if (bytes <= 0 || bytes > MAX_SEGMENT_BYTES || bytes % pageBytes != 0) {
      throw refused(owner, "its size of " + bytes + " bytes is not one of a segment", null);
    }
    if (status.bytes() != bytes) {
      throw refused(
          owner, "it has " + status.bytes() + " bytes where " + bytes + " were stated", null);
    }
  }

  private static ZerohopException refused(
      final String owner, final String reason, final @Nullable Throwable cause) {
    return new ZerohopException(
        Category.FALLBACK,
        Message.of("a segment of " + owner + " was refused").at("host").because(reason),
        cause);
  }

  @Override
  public HostBuffer hostBuffer(final long bytes) {
    return new SegmentBuffer(allocate(bytes));
  }

  @Override
  public HostBuffer pin(final long address, final long bytes) {
    open.checkOpen();
    return new PinnedRange(address, bytes);
  }

  @Override
  public CopyStream openStream(final String name) {
    open.checkOpen();
    return open.add(new HostCopyStream(open::remove, name));
  }

  @Override
  public Signal signal(final Segment segment, final long offset) {
    if (!(segment instanceof HostSegment ours)) {
      throw new IllegalArgumentException("not a segment of the host device: " + segment);
    }
    return new HostSignal(ours, offset);
  }

  @Override
  public int openResources() {
    return open.size();
  }

  @Override
  public void close() {
    open.close();
  }

  /** A segment that is used by this process alone. */
  private record SegmentBuffer(Segment segment) implements HostBuffer {
    @Override
    public long address() {
      return segment.address();
    }

    @Override
    public long bytes() {
      return segment.bytes();
    }

    @Override
    public void close() {
      segment.close();
    }
  }

  /** Memory of this process that the host reaches anyway. */
  private record PinnedRange(long address, long bytes) implements HostBuffer {
    @Override
    public void close() {}
  }

  /**
   * A signal word that waiters sleep on with a futex.
   *
   * <p>A raise always makes the wake call, even if nobody sleeps: the layout has no place for a
   * count of sleepers, and one kept elsewhere would go wrong when a sleeper is killed. A waiter
   * that misses an abort between its look and its sleep sleeps one slice at most.
   */
  private static final class HostSignal implements Signal {
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
        Memory.await(
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
              + ", which is now "
              + current);
    }

    @Override
    public void wake() {
      Memory.wake(words.addressOffset() + EPOCH_OFFSET);
    }
  }

  /**
   * One mapping of a memfd. Who owns or has borrowed it keeps a descriptor to export; a mapped
   * segment keeps none, its mapping alone holds the memory.
   */
  private static final class HostSegment implements Segment {
    private static final int NO_FD = -1;

    /** Pages are reserved in steps, with a look at what is left before each. */
    private static final long RESERVE_STEP_BYTES = 128L << 20;

    private final Consumer<Object> onClose;
    private final String name;
    private final long address;
    private final long bytes;
    private final int fd;
    private final boolean owned;
    private final boolean writable;
    private volatile boolean closed;

    private HostSegment(
        final Consumer<Object> onClose,
        final String name,
        final int fd,
        final boolean owned,
        final long address,
        final long bytes,
        final boolean writable) {
      this.onClose = onClose;
      this.name = name;
      this.fd = fd;
      this.owned = owned;
      this.address = address;
      this.bytes = bytes;
      this.writable = writable;
    }

    /** Creates, maps, reserves and seals. {@code bytes} is a whole number of pages. */
    static HostSegment allocate(
        final Consumer<Object> onClose,
        final String name,
        final long bytes,
        final PeerAccess access) {
      AvailableMemory.check(bytes, bytes);
      int fd = NO_FD;
      long address = 0;
      try {
        fd = Memory.create(name);
        Memory.resize(fd, bytes);
        address = Memory.map(fd, bytes, true);
        reserve(fd, address, bytes);
        Memory.seal(fd, access == PeerAccess.READ);
        return new HostSegment(onClose, name, fd, true, address, bytes, true);
      } catch (final PosixException | DeviceMemoryException e) {
        release(fd, address, bytes);
        throw e instanceof DeviceMemoryException
            ? e
            : new DeviceMemoryException(
                Message.of("no memory for a segment of " + bytes + " bytes").at("host").because(e),
                bytes,
                e);
      }
    }

    /**
     * A memfd has no limit of its own: without the look at what is left, fallocate would go on
     * until the system kills somebody. Populating first lets huge pages be used where they are on.
     */
    private static void reserve(final int fd, final long address, final long bytes) {
      for (long offset = 0; offset < bytes; offset += RESERVE_STEP_BYTES) {
        final long step = Math.min(RESERVE_STEP_BYTES, bytes - offset);
        AvailableMemory.check(step, bytes);
        Memory.populate(address + offset, step);
        Memory.reserve(fd, offset, step);
      }
    }

    /** Maps a checked descriptor, which stays the caller's. */
    static HostSegment map(
        final Consumer<Object> onClose,
        final String name,
        final int fd,
        final long bytes,
        final PeerAccess access) {
      final boolean writable = access == PeerAccess.WRITE;
      final long address = Memory.map(fd, bytes, writable);
      return new HostSegment(onClose, name, NO_FD, false, address, bytes, writable);
    }

    /** Maps a checked descriptor, which stays the caller's, and keeps one of its own. */
    static HostSegment borrow(
        final Consumer<Object> onClose, final String name, final int fd, final long bytes) {
      final int kept = Descriptor.duplicate(fd);
      try {
        final long address = Memory.map(fd, bytes, true);
        return new HostSegment(onClose, name, kept, false, address, bytes, true);
      } catch (final PosixException e) {
        Descriptor.close(kept);
        throw e;
      }
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public boolean owned() {
      return owned;
    }

    @Override
    public synchronized SegmentHandle export() {
      checkOpen();
      if (fd == NO_FD) {
        throw new IllegalStateException(
            "segment "
                + name
                + " was mapped from a peer: only owned or borrowed ones are exported");
      }
      return new FdHandle(Descriptor.duplicate(fd), bytes);
    }

    void checkWritable() {
      checkOpen();
      if (!writable) {
        throw new IllegalStateException("segment " + name + " was mapped for reading alone");
      }
    }

    void checkOpen() {
      if (closed) {
        throw new IllegalStateException("segment " + name + " is closed");
      }
    }

    @Override
    public synchronized void close() {
      if (closed) {
        return;
      }
      closed = true;
      release(fd, address, bytes);
      onClose.accept(this);
    }

    private static void release(final int fd, final long address, final long bytes) {
      if (address != 0) {
        Memory.unmap(address, bytes);
      }
      if (fd != NO_FD) {
        Descriptor.close(fd);
      }
    }

    @Override
    public String toString() {
      return "segment " + name + " (" + bytes + " bytes)";
    }
  }
}
