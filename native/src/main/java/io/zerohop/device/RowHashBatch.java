package io.zerohop.device;

import java.util.Arrays;

/**
 * Tables of columns whose rows are hashed in one submission. For each table the device writes a few
 * 64-bit numbers; added up, modulo 2^64, they are the sum of its rows' hashes, which depends
 * neither on the order of rows nor on how they are cut into tables. Columns lie as Apache Arrow
 * lays them out, with 32-bit offsets.
 *
 * <p>A table's columns follow {@link #beginTable}, each with those below it right behind it. With
 * {@link HashMix#combine}, a row and everything in it is the sequence
 *
 * <pre>
 *  row     ROW, the hash of each column
 *  null    NULL, which is its hash as it is; whatever lies below is not looked at
 *  fixed   FIXED + width, its bytes as one little-endian number (16 bytes: as two)
 *  string  STRING, bytes, each 8 bytes as a little-endian number, the last filled up with zeroes
 *  list    LIST, items, the hash of each item
 *  struct  STRUCT, the hash of each field
 * </pre>
 *
 * <p>of whose numbers the first is where the combining begins. Reusable and not thread safe, as
 * {@link CopyBatch}. Masks are 32-bit words, the first row in the lowest bit, 1 for what is there;
 * 0 instead of an address means that nothing is null.
 *
 * <p>The lists are columns of numbers; what is done with them is the device's matter. A table is
 * cut into chunks of rows, each of which has one result.
 */
public final class RowHashBatch {
  /** How deep lists and structs may lie in one another. */
  public static final int MAX_DEPTH = 16;

  /** The most columns of one table, those below others among them. */
  public static final int MAX_COLUMNS = 4096;

  /** Where combining begins, by kind. */
  public static final long ROW = 0x726f77L;

  public static final long FIXED = 0x6669786564L;

  public static final long STRING = 0x737472696e67L;

  public static final long LIST = 0x6c697374L;

  public static final long STRUCT = 0x737472756374L;

  /** The hash of what is null. */
  public static final long NULL = 0x6e756c6cL;

  /** Kinds of columns. */
  public static final int KIND_FIXED = 0;

  public static final int KIND_STRING = 1;
  public static final int KIND_LIST = 2;
  public static final int KIND_STRUCT = 3;

  private static final int FIRST = 16;
  private static final int MIN_CHUNK_ROWS = 4096;

  /** So that what a device has to be told of one table is bounded. */
  private static final int MAX_CHUNKS = 1024;

  private long[] data = new long[FIRST];
  private long[] offsets = new long[FIRST];
  private long[] masks = new long[FIRST];
  private int[] kinds = new int[FIRST];
  private int[] details = new int[FIRST];
  private int[] ends = new int[FIRST];
  private int columns;

  private int[] firstColumns = new int[FIRST];
  private int[] tops = new int[FIRST];
  private int[] endColumns = new int[FIRST];
  private int[] firstRows = new int[FIRST];
  private int[] rows = new int[FIRST];
  private int[] firstResults = new int[FIRST];
  private int tables;

  private int[] slots = new int[FIRST];
  private int results;

  /** The columns around the next one, and how many are missing on each level. */
  private final int[] open = new int[MAX_DEPTH];

  private final int[] missing = new int[MAX_DEPTH + 1];
  private int depth;

  /**
   * Begins a table.
   *
   * @param top how many columns are at the top
   * @param slot what {@link #slot} says of its results
   * @throws IllegalStateException if columns of the table before are missing
   */
  public void beginTable(final int count, final int top, final int slot) {
    checkComplete();
    if (count < 0 || top < 1) {
      throw new IllegalArgumentException("a table of " + count + " rows, " + top + " columns");
    }
    addTable(columns, columns, top, 0, count, slot);
    missing[0] = top;
  }

  /**
   * Adds a table that consists of other rows of the same columns as the table before.
   *
   * @param first its first row in these columns
   * @param slot what {@link #slot} says of its results
   * @throws IllegalStateException if columns of the table before are missing
   */
  public void addRows(final int first, final int count, final int slot) {
    checkComplete();
    if (tables == 0 || first < 0 || count < 0) {
      throw new IllegalArgumentException(
          count + " rows from row " + first + " on, of " + tables + " tables");
    }
    final int before = tables - 1;
    addTable(firstColumns[before], endColumns[before], tops[before], first, count, slot);
  }

  private void addTable(
      final int firstColumn,
      final int endColumn,
      final int top,
      final int first,
      final int count,
      final int slot) {
    if (tables == rows.length) {
      firstColumns = Arrays.copyOf(firstColumns, 2 * tables);
      endColumns = Arrays.copyOf(endColumns, 2 * tables);
      tops = Arrays.copyOf(tops, 2 * tables);
      firstRows = Arrays.copyOf(firstRows, 2 * tables);
      rows = Arrays.copyOf(rows, 2 * tables);
      firstResults = Arrays.copyOf(firstResults, 2 * tables);
    }
    firstColumns[tables] = firstColumn;
    endColumns[tables] = endColumn;
    tops[tables] = top;
    firstRows[tables] = first;
    rows[tables] = count;
    firstResults[tables] = results;
    tables++;
    final int end =
        results + (int) ((count + (long) chunkRows(tables - 1) - 1) / chunkRows(tables - 1));
    if (end > slots.length) {
      slots = Arrays.copyOf(slots, Math.max(end, 2 * slots.length));
    }
    Arrays.fill(slots, results, end, slot);
    results = end;
  }

  /**
   * Adds a column of values of 1, 2, 4, 8 or 16 bytes.
   *
   * @param address of the values, a multiple of the width; of 8 for 16
   */
  public void addFixed(final int width, final long address, final long mask) {
    if (width < 1 || width > 16 || Integer.bitCount(width) != 1) {
      throw new IllegalArgumentException("values of " + width + " bytes");
    }
    check(address, Math.min(width, Long.BYTES));
    add(KIND_FIXED, width, 0, address, 0, mask);
  }

  /**
   * Adds a column of strings.
   *
   * @param characters to which the offsets count; aligned words that hold some of them are read
   *     whole
   * @param offsetsAddress of one offset more than rows
   */
  public void addString(final long characters, final long offsetsAddress, final long mask) {
    add(KIND_STRING, 0, 0, characters, offsetsAddress, mask);
  }

  /**
   * Begins a column of lists; the one column of their items comes next.
   *
   * @param offsetsAddress of one offset more than rows
   * @throws IllegalStateException if it lies deeper than {@link #MAX_DEPTH}
   */
  public void beginList(final long offsetsAddress, final long mask) {
    add(KIND_LIST, 1, 1, 0, offsetsAddress, mask);
  }

  /**
   * Begins a column of structs; the columns of their fields come next.
   *
   * @throws IllegalStateException if it lies deeper than {@link #MAX_DEPTH}
   */
  public void beginStruct(final int fields, final long mask) {
    if (fields < 0) {
      throw new IllegalArgumentException("a struct of " + fields + " fields");
    }
    add(KIND_STRUCT, fields, fields, 0, 0, mask);
  }

  private static void check(final long address, final int alignment) {
    if (address % alignment != 0) {
      throw new IllegalArgumentException(address + " is not a multiple of " + alignment);
    }
  }

  private void add(
      final int kind,
      final int detail,
      final int children,
      final long address,
      final long offsetsAddress,
      final long mask) {
    check(offsetsAddress, Integer.BYTES);
    check(mask, Integer.BYTES);
    final boolean deep = kind == KIND_LIST || kind == KIND_STRUCT;
    if (tables == 0 || missing[depth] == 0 || deep && depth == MAX_DEPTH) {
      throw new IllegalStateException(
          deep && depth == MAX_DEPTH ? "a column lies too deep" : "a column of no table");
    }
    if (columns - firstColumns[tables - 1] == MAX_COLUMNS) {
      throw new IllegalStateException("a table of more than " + MAX_COLUMNS + " columns");
    }
    if (columns == kinds.length) {
      grow();
    }
    data[columns] = address;
    offsets[columns] = offsetsAddress;
    masks[columns] = mask;
    kinds[columns] = kind;
    details[columns] = detail;
    open(columns++, children);
    endColumns[tables - 1] = columns;
  }

  private void grow() {
    data = Arrays.copyOf(data, 2 * columns);
    offsets = Arrays.copyOf(offsets, 2 * columns);
    masks = Arrays.copyOf(masks, 2 * columns);
    kinds = Arrays.copyOf(kinds, 2 * columns);
    details = Arrays.copyOf(details, 2 * columns);
    ends = Arrays.copyOf(ends, 2 * columns);
  }

  /** Waits for a column's children; where it has none, it ends what is complete by it. */
  private void open(final int column, final int children) {
    missing[depth]--;
    if (children > 0) {
      open[depth++] = column;
      missing[depth] = children;
      return;
    }
    final int first = firstColumns[tables - 1];
    ends[column] = columns - first;
    while (depth > 0 && missing[depth] == 0) {
      ends[open[--depth]] = columns - first;
    }
  }

  /**
   * Checks that all columns are there.
   *
   * @throws IllegalStateException if the last table's are not
   */
  public void checkComplete() {
    if (depth > 0 || missing[0] > 0) {
      throw new IllegalStateException("columns of the last table are missing");
    }
  }

  /** How many 64-bit results the tables so far will have. */
  public int results() {
    return results;
  }

  /** The slot of the table that a result belongs to. */
  public int slot(final int result) {
    return slots[result];
  }

  /** Whether there is nothing to do. */
  public boolean isEmpty() {
    return results == 0;
  }

  /** Empties the list so that it can be filled again. */
  public void clear() {
    columns = 0;
    tables = 0;
    results = 0;
    depth = 0;
    missing[0] = 0;
  }

  /** A batch of its own with the same tables. */
  public RowHashBatch copy() {
    checkComplete();
    final RowHashBatch copy = new RowHashBatch();
    copy.data = data.clone();
    copy.offsets = offsets.clone();
    copy.masks = masks.clone();
    copy.kinds = kinds.clone();
    copy.details = details.clone();
    copy.ends = ends.clone();
    copy.columns = columns;
    copy.firstColumns = firstColumns.clone();
    copy.endColumns = endColumns.clone();
    copy.tops = tops.clone();
    copy.firstRows = firstRows.clone();
    copy.rows = rows.clone();
    copy.firstResults = firstResults.clone();
    copy.tables = tables;
    copy.slots = slots.clone();
    copy.results = results;
    return copy;
  }

  public int tables() {
    return tables;
  }

  /** The first row of a table in its columns. */
  public int firstRow(final int table) {
    return firstRows[table];
  }

  public int rows(final int table) {
    return rows[table];
  }

  /** Rows of each chunk of a table, but for its last. */
  public int chunkRows(final int table) {
    return Math.max(MIN_CHUNK_ROWS, rows[table] / MAX_CHUNKS + 1);
  }

  /** Columns at the top of a table. */
  public int top(final int table) {
    return tops[table];
  }

  /** The result of a table's first chunk. */
  public int firstResult(final int table) {
    return firstResults[table];
  }

  /** The result behind a table's last chunk. */
  public int endOfResults(final int table) {
    return table + 1 < tables ? firstResults[table + 1] : results;
  }

  public int firstColumn(final int table) {
    return firstColumns[table];
  }

  /** The column behind a table's last one. */
  public int endOfColumns(final int table) {
    return endColumns[table];
  }

  public int kind(final int column) {
    return kinds[column];
  }

  /** The width of fixed values, the number of a struct's fields. */
  public int detail(final int column) {
    return details[column];
  }

  /** Where values or characters lie. */
  public long data(final int column) {
    return data[column];
  }

  public long offsets(final int column) {
    return offsets[column];
  }

  /** Where a column's mask lies; 0 if it has none. */
  public long mask(final int column) {
    return masks[column];
  }

  /** Index behind a column and all below it, counted from the table's first one. */
  public int end(final int column) {
    return ends[column];
  }

  /**
   * The mixing of row hashes, on the host as on a GPU (rowhash.cuh). It is the finaliser of
   * splitmix64, "Mix13" of David Stafford's <a
   * href="https://zimbry.blogspot.com/2011/09/better-bit-mixing-improving-on.html">Better Bit
   * Mixing</a>. Its increment is of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
   * Generators" (OOPSLA 2014).
   */
  public static final class HashMix {
    private static final long GAMMA = 0x9e3779b97f4a7c15L;
    private static final long FIRST = 0xbf58476d1ce4e5b9L;
    private static final long SECOND = 0x94d049bb133111ebL;

    private HashMix() {}

    /** A one-to-one function by which every bit of a value changes about half of all bits. */
    public static long mix(final long value) {
      long mixed = (value ^ value >>> 30) * FIRST;
      mixed = (mixed ^ mixed >>> 27) * SECOND;
      return mixed ^ mixed >>> 31;
    }

    /** The hash of a sequence that has one more value; the order of values matters. */
    public static long combine(final long hash, final long value) {
      return mix((hash ^ value) + GAMMA);
    }
  }
}
