package io.zerohop.device.host;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.posix.Memory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/**
 * Copies as an off-heap list, so that a whole batch is one native call.
 *
 * <p>An entry is three 64-bit words in native order, as {@code struct zh_copy} in memory.c:
 *
 * <pre>
 *  0        8             16       24
 *  | source | destination | length |
 * </pre>
 */
final class HostCopyBatch implements CopyBatch {
  private static final int ENTRY_BYTES = 24;
  private static final int FIRST_CAPACITY = 64;
  private static final int MAX_ENTRIES = Integer.MAX_VALUE / ENTRY_BYTES;

  private ByteBuffer entries = newList(FIRST_CAPACITY);
  private int size;
  private long bytes;

  @Override
  public void add(final long sourceAddress, final long destinationAddress, final long length) {
    CopyBatch.check(sourceAddress, destinationAddress, length);
    if (length == 0) {
      return;
    }
    if ((size + 1) * ENTRY_BYTES > entries.capacity()) {
      grow();
    }
    final int at = size * ENTRY_BYTES;
    entries.putLong(at, sourceAddress);
    entries.putLong(at + 8, destinationAddress);
    entries.putLong(at + 16, length);
    size++;
    bytes += length;
  }

  private void grow() {
    if (size == MAX_ENTRIES) {
      throw new IllegalStateException("a batch holds at most " + MAX_ENTRIES + " copies");
    }
    final ByteBuffer larger = newList((int) Math.min(MAX_ENTRIES, size * 2L));
    larger.put(0, entries, 0, size * ENTRY_BYTES);
    entries = larger;
  }

  private static ByteBuffer newList(final int capacity) {
    return ByteBuffer.allocateDirect(capacity * ENTRY_BYTES).order(ByteOrder.nativeOrder());
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public void clear() {
    size = 0;
    bytes = 0;
  }

  /** Makes the copies, in order, on the calling thread. */
  void run() {
    if (size > 0) {
      final ByteBuffer list = entries;
      try {
        Memory.copy(BufferUtil.address(list), size);
      } finally {
        Reference.reachabilityFence(list); // Native code has its address, which keeps nothing.
      }
    }
  }
}
