package io.zerohop.device;

/**
 * A handle by which a peer maps a segment: a tagged union of the ways memory can be exported. Owns
 * its file descriptor, if the kind has one.
 */
public interface SegmentHandle extends AutoCloseable {

  /** The way in which the memory is exported. The wire codes are fixed. */
  enum Kind {
    /** A POSIX file descriptor: memfd on the host, {@code cuMemExportToShareableHandle} on CUDA. */
    POSIX_FD((byte) 1),
    /** A fabric handle of 64 opaque bytes, valid between nodes of one NVLink domain. */
    FABRIC((byte) 3);

    private final byte code;

    Kind(final byte code) {
      this.code = code;
    }

    /** The code of this kind on the wire. */
    public byte code() {
      return code;
    }
  }

  Kind kind();

  /** Size of the exported memory in bytes. */
  long bytes();

  /**
   * The descriptor of a {@link Kind#POSIX_FD} handle, still owned by this handle.
   *
   * @throws IllegalStateException for other kinds or after {@link #close()}
   */
  int fd();

  /** The access that the owner grants to a process that maps it, as far as the handle tells. */
  default PeerAccess access() {
    return PeerAccess.WRITE;
  }

  /** The opaque bytes of the other kinds; empty for {@link Kind#POSIX_FD}. A fresh array. */
  byte[] opaque();

  /** Closes the descriptor. Idempotent. */
  @Override
  void close();
}
