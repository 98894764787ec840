package io.zerohop.device.host;

import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.Message;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.PosixException;
import java.util.function.Consumer;

/**
 * One mapping of a memfd. The owner keeps the descriptor to export; a mapped segment keeps none,
 * its mapping alone holds the memory.
 */
final class HostSegment implements Segment {
  private static final int NO_FD = -1;

  /** Pages are reserved in steps, with a look at what is left before each. */
  private static final long RESERVE_STEP_BYTES = 128L << 20;

  private final Consumer<Object> onClose;
  private final String name;
  private final long address;
  private final long bytes;
  private final int fd;
  private final boolean writable;
  private volatile boolean closed;

  private HostSegment(
      final Consumer<Object> onClose,
      final String name,
      final int fd,
      final long address,
      final long bytes,
      final boolean writable) {
    this.onClose = onClose;
    this.name = name;
    this.fd = fd;
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
      return new HostSegment(onClose, name, fd, address, bytes, true);
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
   * A memfd has no limit of its own: without the look at what is left, fallocate would go on until
   * the system kills somebody. Populating first lets huge pages be used where they are on.
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
    return new HostSegment(onClose, name, NO_FD, address, bytes, writable);
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
    return fd != NO_FD;
  }

  @Override
  public synchronized SegmentHandle export() {
    checkOpen();
    if (fd == NO_FD) {
      throw new IllegalStateException(
          "segment " + name + " was mapped from a peer: only its owner's can be exported");
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
