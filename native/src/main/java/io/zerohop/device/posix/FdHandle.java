package io.zerohop.device.posix;

import io.zerohop.device.PeerAccess;
import io.zerohop.device.SegmentHandle;

/** A segment exported as a file descriptor. Thread safe. */
public final class FdHandle implements SegmentHandle {
  private static final int CLOSED = -1;

  private final long bytes;
  private int fd;

  /**
   * Takes over a descriptor.
   *
   * @param fd owned by this handle from now on
   * @param bytes size that the exporter states; whoever maps it checks
   */
  public FdHandle(final int fd, final long bytes) {
    if (fd < 0) {
      throw new IllegalArgumentException("descriptor " + fd);
    }
    this.fd = fd;
    this.bytes = bytes;
  }

  @Override
  public Kind kind() {
    return Kind.POSIX_FD;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public synchronized int fd() {
    if (fd == CLOSED) {
      throw new IllegalStateException("segment handle is closed");
    }
    return fd;
  }

  @Override
  public PeerAccess access() {
    return Memory.isReadOnly(fd()) ? PeerAccess.READ : PeerAccess.WRITE;
  }

  @Override
  public byte[] opaque() {
    return new byte[0];
  }

  @Override
  public synchronized void close() {
    if (fd != CLOSED) {
      final int closing = fd;
      fd = CLOSED;
      Descriptor.close(closing);
    }
  }
}
