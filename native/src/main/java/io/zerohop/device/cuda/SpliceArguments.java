package io.zerohop.device.cuda;

import io.zerohop.device.SpliceBatch;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jcuda.Pointer;

/**
 * {@code struct Splice} of splice.cuh and the lists that it names, which are written to pinned
 * memory. For one launch.
 */
final class SpliceArguments {
  private static final int STRUCT_BYTES = 32;
  private static final int OFFSETS_BYTES = 24;
  private static final int COLUMN_BYTES = 24;
  private static final int RUN_BYTES = 16;

  /** A longer piece is cut, so that several thread blocks share it. */
  private static final int PIECE_VALUES = 16_384;

  /** A thread block is worth as many words of bits. */
  private static final int WORDS_PER_BLOCK = 4_096;

  private final byte[] struct = new byte[STRUCT_BYTES];
  private int blocks;

  /**
   * Writes the lists.
   *
   * @param to pinned memory, of which {@link #bytes} are taken
   * @param at offset in it
   * @param address the GPU's address of that offset
   */
  SpliceArguments(final SpliceBatch lists, final ByteBuffer to, final int at, final long address) {
    final int pieces = pieces(lists);
    final int columnsAt = at + pieces * OFFSETS_BYTES;
    final int runsAt = columnsAt + lists.bitColumns() * COLUMN_BYTES;
    blocks = pieces;
    writeOffsets(lists, to, at);
    writeColumns(lists, to, columnsAt);
    for (int run = 0; run < lists.runs(); run++) {
      final int entry = runsAt + run * RUN_BYTES;
      to.putLong(entry, lists.runSource(run));
      to.putInt(entry + 8, lists.runStart(run));
    }
    ByteBuffer.wrap(struct)
        .order(ByteOrder.nativeOrder())
        .putLong(address)
        .putLong(address + columnsAt - at)
        .putLong(address + runsAt - at)
        .putInt(pieces)
        .putInt(lists.bitColumns());
  }

  /** Bytes of pinned memory that the lists take. */
  static int bytes(final SpliceBatch lists) {
    return Math.addExact(
        Math.multiplyExact(pieces(lists), OFFSETS_BYTES),
        lists.bitColumns() * COLUMN_BYTES + Math.multiplyExact(lists.runs(), RUN_BYTES));
  }

  private static int pieces(final SpliceBatch lists) {
    final int[] pieces = {0};
    lists.forEachOffsets(
        (source, destination, count, delta) ->
            pieces[0] += (count + PIECE_VALUES - 1) / PIECE_VALUES);
    return pieces[0];
  }

  private static void writeOffsets(final SpliceBatch lists, final ByteBuffer to, final int from) {
    final int[] at = {from};
    lists.forEachOffsets(
        (source, destination, count, delta) -> {
          for (int done = 0; done < count; done += PIECE_VALUES) {
            to.putLong(at[0], source + 4L * done);
            to.putLong(at[0] + 8, destination + 4L * done);
            to.putInt(at[0] + 16, Math.min(PIECE_VALUES, count - done));
            to.putInt(at[0] + 20, delta);
            at[0] += OFFSETS_BYTES;
          }
        });
  }

  private void writeColumns(final SpliceBatch lists, final ByteBuffer to, final int from) {
    for (int column = 0; column < lists.bitColumns(); column++) {
      final int entry = from + column * COLUMN_BYTES;
      to.putLong(entry, lists.destination(column));
      to.putInt(entry + 8, lists.bits(column));
      to.putInt(entry + 12, lists.firstRun(column));
      to.putInt(entry + 16, lists.endOfRuns(column) - lists.firstRun(column));
      blocks = Math.max(blocks, 1 + lists.bits(column) / Integer.SIZE / WORDS_PER_BLOCK);
    }
  }

  /** How many thread blocks have something to do. */
  int blocks() {
    return blocks;
  }

  Pointer struct() {
    return Pointer.to(struct);
  }
}
