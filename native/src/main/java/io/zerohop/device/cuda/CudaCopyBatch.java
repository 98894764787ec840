package io.zerohop.device.cuda;

import io.zerohop.device.CopyBatch;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Copies as three columns outside the heap, as the kernel reads them. Large copies are kept apart:
 * they go to the copy engines, unless the stream cannot use them. Addresses are GPU memory, own or
 * mapped, or pinned host memory; nobody checks them, and a wrong one ends the executor.
 */
final class CudaCopyBatch implements CopyBatch {
  /**
   * From here on copies go to the copy engines. They are 6 % faster on one block alone, but slower
   * when four GPUs read 64 MiB of each other at once (docs/gpu.md), which is what shuffles do.
   */
  static final long ENGINE_BYTES = 128L << 20;

  private static final int FIRST_CAPACITY = 256;
  private static final int MAX_COPIES = Integer.MAX_VALUE / Long.BYTES / 2;

  private ByteBuffer sources = column(FIRST_CAPACITY, Long.BYTES);
  private ByteBuffer destinations = column(FIRST_CAPACITY, Long.BYTES);
  private ByteBuffer lengths = column(FIRST_CAPACITY, Integer.BYTES);
  private int small;
  private final List<EngineCopy> large = new ArrayList<>();
  private long bytes;

  /** A copy for the copy engine. */
  record EngineCopy(long source, long destination, long length) {}

  private static ByteBuffer column(final int rows, final int width) {
    return ByteBuffer.allocateDirect(rows * width).order(ByteOrder.nativeOrder());
  }

  @Override
  public void add(final long sourceAddress, final long destinationAddress, final long length) {
    CopyBatch.check(sourceAddress, destinationAddress, length);
    if (length == 0) {
      return;
    }
    if (length >= ENGINE_BYTES) {
      large.add(new EngineCopy(sourceAddress, destinationAddress, length));
    } else {
      addSmall(sourceAddress, destinationAddress, (int) length);
    }
    bytes += length;
  }

  @Override
  public void addByEngine(
      final long sourceAddress, final long destinationAddress, final long length) {
    CopyBatch.check(sourceAddress, destinationAddress, length);
    if (length > 0) {
      large.add(new EngineCopy(sourceAddress, destinationAddress, length));
      bytes += length;
    }
  }

  private void addSmall(final long source, final long destination, final int length) {
    if (small * Long.BYTES == sources.capacity()) {
      grow();
    }
    sources.putLong(small * Long.BYTES, source);
    destinations.putLong(small * Long.BYTES, destination);
    lengths.putInt(small * Integer.BYTES, length);
    small++;
  }

  private void grow() {
    if (small == MAX_COPIES) {
      throw new IllegalStateException("a batch holds at most " + MAX_COPIES + " copies");
    }
    final int rows = (int) Math.min(MAX_COPIES, 2L * small);
    sources = grown(sources, rows, Long.BYTES);
    destinations = grown(destinations, rows, Long.BYTES);
    lengths = grown(lengths, rows, Integer.BYTES);
  }

  private ByteBuffer grown(final ByteBuffer column, final int rows, final int width) {
    return column(rows, width).put(0, column, 0, small * width);
  }

  @Override
  public int size() {
    return small + large.size();
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public void clear() {
    small = 0;
    large.clear();
    bytes = 0;
  }

  /** Copies for the kernel. */
  int small() {
    return small;
  }

  /** Copies for the engines. */
  List<EngineCopy> large() {
    return large;
  }

  /** Makes the large copies small ones, in pieces, for a stream that must not use the engines. */
  void dissolveLarge() {
    final long piece = ENGINE_BYTES / 4;
    for (final EngineCopy copy : large) {
      for (long at = 0; at < copy.length; at += piece) {
        final int length = (int) Math.min(piece, copy.length - at);
        addSmall(copy.source + at, copy.destination + at, length);
      }
    }
    large.clear();
  }

  int length(final int copy) {
    return lengths.getInt(copy * Integer.BYTES);
  }

  /**
   * Writes rows of the columns one behind the other: all sources, all destinations, all lengths.
   */
  void write(final int first, final int count, final ByteBuffer to, final int at) {
    final int longs = count * Long.BYTES;
    to.put(at, sources, first * Long.BYTES, longs);
    to.put(at + longs, destinations, first * Long.BYTES, longs);
    to.put(at + 2 * longs, lengths, first * Integer.BYTES, count * Integer.BYTES);
  }
}
