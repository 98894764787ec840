package io.zerohop.spark.rapids.read;

import io.zerohop.device.Crc32c;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToLongFunction;
import java.util.stream.LongStream;
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
}
