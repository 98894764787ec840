package io.zerohop.device;

import java.util.Arrays;

/**
 * Pieces of columns that are joined in one submission and need more than a copy. These are columns
 * of offsets whose pieces count from different beginnings, and columns of bits whose pieces do not
 * end with a word. Reusable and not thread safe, as {@link CopyBatch}.
 *
 * <p>The lists are columns of numbers; what is done with them is the device's matter.
 */
public final class SpliceBatch {
  private static final int FIRST = 16;

  private long[] sources = new long[FIRST];
  private long[] destinations = new long[FIRST];
  private int[] counts = new int[FIRST];
  private int[] deltas = new int[FIRST];
  private int offsets;

  private long[] columns = new long[FIRST];
  private int[] columnBits = new int[FIRST];
  private int[] firstRuns = new int[FIRST];
  private int bitColumns;

  private long[] runSources = new long[FIRST];
  private int[] runStarts = new int[FIRST];
  private int runs;

  /** Takes each piece of offsets in turn. */
  @FunctionalInterface
  public interface OffsetsConsumer {
    void piece(long source, long destination, int count, int delta);
  }

  /**
   * Adds 32-bit integers that grow by {@code delta} on their way. Both addresses are multiples of
   * 4.
   */
  public void addOffsets(
      final long sourceAddress, final long destinationAddress, final int count, final int delta) {
    check(sourceAddress, destinationAddress, count);
    if (count == 0) {
      return;
    }
    if (offsets == sources.length) {
      sources = Arrays.copyOf(sources, 2 * offsets);
      destinations = Arrays.copyOf(destinations, 2 * offsets);
      counts = Arrays.copyOf(counts, 2 * offsets);
      deltas = Arrays.copyOf(deltas, 2 * offsets);
    }
    sources[offsets] = sourceAddress;
    destinations[offsets] = destinationAddress;
    counts[offsets] = count;
    deltas[offsets] = delta;
    offsets++;
  }

  /**
   * Begins a column of bits, the first in the lowest place of the first 32-bit word. Whole words
   * are written; what is behind the last bit becomes 0. The address is a multiple of 4.
   */
  public void beginBits(final long destinationAddress) {
    check(destinationAddress, destinationAddress, 0);
    if (bitColumns == columns.length) {
      columns = Arrays.copyOf(columns, 2 * bitColumns);
      columnBits = Arrays.copyOf(columnBits, 2 * bitColumns);
      firstRuns = Arrays.copyOf(firstRuns, 2 * bitColumns);
    }
    columns[bitColumns] = destinationAddress;
    columnBits[bitColumns] = 0;
    firstRuns[bitColumns] = runs;
    bitColumns++;
  }

  /**
   * Adds bits to the column that was begun; zero counts are dropped.
   *
   * @param sourceAddress of the word whose lowest bit is the first, a multiple of 4; 0 for ones
   */
  public void addBits(final long sourceAddress, final int count) {
    check(sourceAddress, sourceAddress, count);
    if (bitColumns == 0) {
      throw new IllegalStateException("no column of bits was begun");
    }
    if (count == 0) {
      return;
    }
    if (runs == runSources.length) {
      runSources = Arrays.copyOf(runSources, 2 * runs);
      runStarts = Arrays.copyOf(runStarts, 2 * runs);
    }
    final int column = bitColumns - 1;
    runSources[runs] = sourceAddress;
    runStarts[runs] = columnBits[column];
    columnBits[column] = Math.addExact(columnBits[column], count);
    runs++;
  }

  private static void check(final long source, final long destination, final int count) {
    if (count < 0 || source % Integer.BYTES != 0 || destination % Integer.BYTES != 0) {
      throw new IllegalArgumentException(
          count + " values from " + source + " to " + destination + ": not aligned, or negative");
    }
  }

  /** Whether there is nothing to do. */
  public boolean isEmpty() {
    return offsets == 0 && bitColumns == 0;
  }

  /** Empties the list so that it can be filled again. */
  public void clear() {
    offsets = 0;
    bitColumns = 0;
    runs = 0;
  }

  /** A batch of its own with the same pieces. */
  public SpliceBatch copy() {
    final SpliceBatch copy = new SpliceBatch();
    forEachOffsets(copy::addOffsets);
    for (int column = 0; column < bitColumns; column++) {
      copy.beginBits(columns[column]);
      for (int run = firstRuns[column]; run < endOfRuns(column); run++) {
        final int end = run + 1 < endOfRuns(column) ? runStarts[run + 1] : columnBits[column];
        copy.addBits(runSources[run], end - runStarts[run]);
      }
    }
    return copy;
  }

  public int offsets() {
    return offsets;
  }

  /** Gives the pieces of offsets, in order. */
  public void forEachOffsets(final OffsetsConsumer consumer) {
    for (int i = 0; i < offsets; i++) {
      consumer.piece(sources[i], destinations[i], counts[i], deltas[i]);
    }
  }

  public int bitColumns() {
    return bitColumns;
  }

  /** Where a column of bits goes. */
  public long destination(final int column) {
    return columns[column];
  }

  public int bits(final int column) {
    return columnBits[column];
  }

  /** Index of a column's first run of bits. */
  public int firstRun(final int column) {
    return firstRuns[column];
  }

  /** Index behind a column's last run of bits. */
  public int endOfRuns(final int column) {
    return column + 1 < bitColumns ? firstRuns[column + 1] : runs;
  }

  public int runs() {
    return runs;
  }

  /** Where the bits of a run lie; 0 for ones. */
  public long runSource(final int run) {
    return runSources[run];
  }

  /** Bits of its column that are before a run. */
  public int runStart(final int run) {
    return runStarts[run];
  }
}
