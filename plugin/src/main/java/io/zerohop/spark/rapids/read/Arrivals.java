package io.zerohop.spark.rapids.read;

import io.zerohop.device.Crc32c;
import io.zerohop.device.HostBuffer;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToLongFunction;
import java.util.function.LongFunction;
import java.util.stream.LongStream;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * Compares blocks that have arrived in GPU memory with what was written, before anything reads what
 * their bytes say. For one task's thread; owns nothing.
 *
 * @param check throws if an owner may have freed blocks before they were gathered; does not wait
 */
record Arrivals(TableGather gather, Runnable check) {

  /**
   * A waiting block, and the address of its bytes within the gather's reach.
   *
   * @param tables one behind the other; none if it is a Kudo block
   * @param room what it takes in GPU memory until it is part of a table
   * @param of whose extent it is, if that carries a checksum that was not compared
   */
  record Waiting(
      List<PackedTable> tables,
      long address,
      long bytes,
      long room,
      @Nullable FetchedBlock of,
      int extent) {
    boolean isKudo() {
      return tables.isEmpty();
    }

    /** Tables, or the one Kudo block. */
    int parts() {
      return isKudo() ? 1 : tables.size();
    }

    /** Bytes of one of them. */
    long length(final int part) {
      return isKudo() ? bytes : tables.get(part).bytes();
    }
  }

  /**
   * Waits for blocks and compares those that carry checksums, since their bytes say how they are
   * read.
   *
   * @param addresses where each of their tables is now, or where each Kudo block is
   * @throws BlockFetchException if a block is not what was written
   */
  void compare(final List<Waiting> blocks, final long[] addresses) {
    int[] sums = null;
    if (blocks.stream().anyMatch(next -> next.of() != null)) {
      sums = gather.checksums(addresses, lengths(blocks, addresses.length));
    }
    gather.finish();
    check.run();
    int part = 0;
    for (final Waiting block : blocks) {
      int sum = 0;
      for (int i = 0; sums != null && i < block.parts(); i++) {
        sum = Crc32c.join(sum, sums[part++], (int) block.length(i));
      }
      if (sums != null && block.of() != null) {
        block.of().verify(block.extent(), sum);
      }
    }
  }

  private static long[] lengths(final List<Waiting> blocks, final int parts) {
    final long[] lengths = new long[parts];
    int part = 0;
    for (final Waiting block : blocks) {
      for (int i = 0; i < block.parts(); i++) {
        lengths[part++] = block.length(i);
      }
    }
    return lengths;
  }

  /** Where each block begins if they lie one behind the other, and where the last one ends. */
  static long[] starts(final List<Waiting> blocks) {
    final long[] starts = new long[blocks.size() + 1];
    for (int i = 0; i < blocks.size(); i++) {
      starts[i + 1] = starts[i] + blocks.get(i).bytes();
    }
    return starts;
  }

  static List<TableGather.Piece> pieces(final List<Waiting> blocks, final long[] starts) {
    final List<TableGather.Piece> pieces = new ArrayList<>(blocks.size());
    for (int i = 0; i < blocks.size(); i++) {
      final Waiting block = blocks.get(i);
      if (block.bytes() > 0) {
        pieces.add(new TableGather.Piece(block.address(), starts[i], block.bytes()));
      }
    }
    return pieces;
  }

  /**
   * The address of each table.
   *
   * @param ofBlock where the tables of each block begin
   */
  static long[] addresses(final List<Waiting> blocks, final IntToLongFunction ofBlock) {
    final LongStream.Builder addresses = LongStream.builder();
    for (int i = 0; i < blocks.size(); i++) {
      long at = ofBlock.applyAsLong(i);
      for (final PackedTable table : blocks.get(i).tables()) {
        addresses.add(at);
        at += table.bytes();
      }
    }
    return addresses.build().toArray();
  }

  /**
   * Host memory that the GPU reaches, in which bytes from the host wait to be gathered with the
   * others. For one thread; owns its buffers.
   */
  static final class HostStaging implements AutoCloseable {
    private static final long BUFFER_BYTES = 8L << 20;
    private static final int ALIGNMENT = 256;
    private static final int STEP_BYTES = 64 << 10;

    /** Of one table, how much is taken on the word of its header: more has to come first. */
    private static final long BELIEVED_BYTES = 64L << 20;

    /** The factor by which the next estimate may exceed the bytes that have arrived. */
    private static final long GROWTH = 4;

    private final LongFunction<HostBuffer> allocator;
    private final List<HostBuffer> buffers = new ArrayList<>();
    private long next;
    private long end;

    /**
     * @param allocator gives a buffer of at least so many bytes
     */
    HostStaging(final LongFunction<HostBuffer> allocator) {
      this.allocator = allocator;
    }

    /** Copies bytes of this process; returns where they are now. */
    long copy(final long address, final long bytes) {
      final long at = take(bytes);
      Platform.copyMemory(null, address, null, at, bytes);
      return at;
    }

    /**
     * Reads bytes of a stream; returns where they are now. Takes no more memory than a few times
     * what comes, whatever a header has said.
     *
     * @throws EOFException if it ends before
     */
    long read(final InputStream in, final long bytes) throws IOException {
      if (bytes > BELIEVED_BYTES) {
        return readLong(in, bytes);
      }
      final long at = take(bytes);
      fill(in, at, 0, bytes, bytes);
      return at;
    }

    /** Into a buffer of its own, which grows with what has come. */
    private long readLong(final InputStream in, final long bytes) throws IOException {
      long room = BELIEVED_BYTES;
      HostBuffer buffer = allocator.apply(room);
      boolean done = false;
      try {
        fill(in, buffer.address(), 0, room, bytes);
        while (room < bytes) {
          final long there = room;
          room = Math.min(bytes, GROWTH * there);
          final HostBuffer larger = allocator.apply(room);
          Platform.copyMemory(null, buffer.address(), null, larger.address(), there);
          buffer.close();
          buffer = larger;
          fill(in, buffer.address(), there, room, bytes);
        }
        buffers.add(buffer);
        done = true;
        return buffer.address();
      } finally {
        if (!done) {
          buffer.close();
        }
      }
    }

    /** Reads what belongs from one place behind an address to another. */
    private static void fill(
        final InputStream in, final long at, final long from, final long to, final long bytes)
        throws IOException {
      final byte[] step = new byte[(int) Math.min(STEP_BYTES, to - from)];
      for (long done = from; done < to; ) {
        final int read = in.read(step, 0, (int) Math.min(step.length, to - done));
        if (read < 0) {
          throw new EOFException("a table ends after " + done + " of " + bytes + " bytes");
        }
        Platform.copyMemory(step, Platform.BYTE_ARRAY_OFFSET, null, at + done, read);
        done += read;
      }
    }

    /** Bytes of its buffers. */
    long bytes() {
      return buffers.stream().mapToLong(HostBuffer::bytes).sum();
    }

    private long take(final long bytes) {
      if (end - next < bytes) {
        final HostBuffer buffer = allocator.apply(Math.max(BUFFER_BYTES, bytes));
        buffers.add(buffer);
        next = buffer.address();
        end = next + buffer.bytes();
      }
      final long at = next;
      next = (next + bytes + ALIGNMENT - 1) & -ALIGNMENT;
      return at;
    }

    /** Frees everything; no copy may be under way. */
    @Override
    public void close() {
      buffers.forEach(HostBuffer::close);
      buffers.clear();
      next = 0;
      end = 0;
    }
  }
}
