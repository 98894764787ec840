package io.zerohop.device;

import org.jspecify.annotations.Nullable;

/**
 * A large region of exportable memory, mapped into this process for its whole life. A segment is
 * owned (allocated here), mapped from a peer, or borrowed from one; all are readable, and only who
 * owns or has borrowed it may write block bytes.
 *
 * <p>Thread safe. After {@link #close()} the address must not be touched.
 */
public interface Segment extends AutoCloseable {

  /** Address of the first byte, valid on the device (for {@code host}: in this process). */
  long address();

  /** Size in bytes. */
  long bytes();

  /** Whether this process allocated the memory; false when it was mapped from a peer. */
  boolean owned();

  /**
   * A new handle to this memory that can be sent to a peer. The caller owns it and closes it.
   *
   * @throws IllegalStateException on a mapped segment: only who owns or has borrowed it exports
   */
  SegmentHandle export();

  /**
   * A handle by which devices of the same clique on other nodes map this memory; absent where
   * {@link Device#fabric} says that there is none, and of a borrowed segment. It holds nothing:
   * whoever maps it reads memory that is gone once this segment is closed, or its process has
   * ended.
   *
   * @throws IllegalStateException on a mapped segment: only owners export
   */
  default @Nullable SegmentHandle exportFabric() {
    return null;
  }

  /** Unmaps the memory and drops this process's hold on it. Idempotent. */
  @Override
  void close();
}
