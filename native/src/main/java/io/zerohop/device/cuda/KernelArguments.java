package io.zerohop.device.cuda;

import io.zerohop.device.RowHashBatch;
import io.zerohop.device.SpliceBatch;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jcuda.Pointer;

/** The structs that kernels take, as their headers declare them, and the lists that they name. */
final class KernelArguments {
  private KernelArguments() {}

  /** {@code struct Gather} of launch.cuh: the one argument of every kernel. For one thread. */
  static final class GatherArguments {
    private static final int BYTES = 96;
    private static final int LIST = 0;
    private static final int WAITS = 32;
    private static final int RAISES = 40;
    private static final int STATE = 48;
    private static final int FINISHED = 56;
    private static final int LIMIT = 64;
    private static final int RANGE_COUNT = 72;
    private static final int WAIT_COUNT = 76;
    private static final int RAISE_COUNT = 80;
    private static final int LAUNCH = 84;
    private static final int CONDITIONAL = 88;

    private final byte[] array = new byte[BYTES];
    private final ByteBuffer bytes = ByteBuffer.wrap(array).order(ByteOrder.nativeOrder());
    private final Pointer struct = Pointer.to(array);
    private final Pointer pointer = Pointer.to(struct);

    GatherArguments(final long stateAddress, final long finishedAddress) {
      bytes.putLong(STATE, stateAddress);
      bytes.putLong(FINISHED, finishedAddress);
    }

    /** Begins the arguments of a launch without copies, waits or raises. */
    void begin(final int launch, final boolean conditional) {
      bytes.putInt(RANGE_COUNT, 0);
      bytes.putInt(WAIT_COUNT, 0);
      bytes.putInt(RAISE_COUNT, 0);
      bytes.putLong(LIMIT, 0);
      bytes.putInt(LAUNCH, launch);
      bytes.putInt(CONDITIONAL, conditional ? 1 : 0);
    }

    /** The list, as {@link CudaCopyBatch#write} leaves it, and its ranges. */
    void list(final long address, final int copies, final long ranges, final int rangeCount) {
      bytes.putLong(LIST, address);
      bytes.putLong(LIST + 8, address + (long) copies * Long.BYTES);
      bytes.putLong(LIST + 16, address + 2L * copies * Long.BYTES);
      bytes.putLong(LIST + 24, ranges);
      bytes.putInt(RANGE_COUNT, rangeCount);
    }

    void waits(final long address, final int count, final long limitNanos) {
      bytes.putLong(WAITS, address);
      bytes.putInt(WAIT_COUNT, count);
      bytes.putLong(LIMIT, limitNanos);
    }

    void raises(final long address, final int count) {
      bytes.putLong(RAISES, address);
      bytes.putInt(RAISE_COUNT, count);
    }

    /** The struct itself, where it is one argument of several. */
    Pointer struct() {
      return struct;
    }

    Pointer pointer() {
      return pointer;
    }
  }

  /**
   * {@code struct Splice} of splice.cuh and the lists that it names, which are written to pinned
   * memory. For one launch.
   */
  static final class SpliceArguments {
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
    SpliceArguments(
        final SpliceBatch lists, final ByteBuffer to, final int at, final long address) {
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

  /**
   * {@code struct RowHash} of rowhash.cuh and the lists that it names, which are written to pinned
   * memory: some of the tables of a batch. For one launch.
   */
  static final class RowHashArguments {
    private static final int STRUCT_BYTES = 24;
    private static final int COLUMN_BYTES = 32;
    private static final int CHUNK_BYTES = 32;
    private static final int KIND_BITS = 2;

    private final RowHashBatch lists;
    private final int first;
    private final int end;
    private final byte[] struct = new byte[STRUCT_BYTES];

    /**
     * As many tables as fit, but at least one.
     *
     * @param first of the tables
     * @param mostBytes that their lists may take
     */
    RowHashArguments(final RowHashBatch lists, final int first, final int mostBytes) {
      this.lists = lists;
      this.first = first;
      int next = first + 1;
      while (next < lists.tables() && bytes(lists, first, next + 1) <= mostBytes) {
        next++;
      }
      this.end = next;
    }

    private static long bytes(final RowHashBatch lists, final int first, final int end) {
      return (long) COLUMN_BYTES * (lists.endOfColumns(end - 1) - lists.firstColumn(first))
          + (long) CHUNK_BYTES * (lists.endOfResults(end - 1) - lists.firstResult(first));
    }

    /** Bytes of pinned memory that the lists take. */
    int bytes() {
      return Math.toIntExact(bytes(lists, first, end));
    }

    /** The table behind the last one. */
    int end() {
      return end;
    }

    /** Returns the number of chunks of rows; each keeps a thread block busy. */
    int chunks() {
      return lists.endOfResults(end - 1) - lists.firstResult(first);
    }

    /**
     * Writes the lists.
     *
     * @param to pinned memory, of which {@link #bytes} are taken
     * @param at offset in it, a multiple of 16
     * @param address the GPU's address of that offset
     * @param results where the batch's first result goes
     */
    void write(final ByteBuffer to, final int at, final long address, final long results) {
      final int firstColumn = lists.firstColumn(first);
      final int columns = lists.endOfColumns(end - 1) - firstColumn;
      for (int i = 0; i < columns; i++) {
        column(to, at + i * COLUMN_BYTES, firstColumn + i);
      }
      int chunk = at + columns * COLUMN_BYTES;
      for (int table = first; table < end; table++) {
        for (int i = lists.firstResult(table); i < lists.endOfResults(table); i++) {
          final int row = (i - lists.firstResult(table)) * lists.chunkRows(table);
          to.putLong(chunk, results + (long) Long.BYTES * i);
          to.putInt(chunk + 8, lists.firstColumn(table) - firstColumn);
          to.putInt(chunk + 12, lists.endOfColumns(table) - lists.firstColumn(table));
          to.putInt(chunk + 16, lists.top(table));
          to.putInt(chunk + 20, lists.firstRow(table) + row);
          to.putInt(chunk + 24, Math.min(lists.chunkRows(table), lists.rows(table) - row));
          chunk += CHUNK_BYTES;
        }
      }
      ByteBuffer.wrap(struct)
          .order(ByteOrder.nativeOrder())
          .putLong(address)
          .putLong(address + (long) columns * COLUMN_BYTES)
          .putInt(chunks());
    }

    private void column(final ByteBuffer to, final int at, final int column) {
      to.putLong(at, lists.data(column));
      to.putLong(at + 8, lists.offsets(column));
      to.putLong(at + 16, lists.mask(column));
      to.putInt(at + 24, lists.kind(column) | lists.detail(column) << KIND_BITS);
      to.putInt(at + 28, lists.end(column));
    }

    Pointer struct() {
      return Pointer.to(struct);
    }
  }
}
