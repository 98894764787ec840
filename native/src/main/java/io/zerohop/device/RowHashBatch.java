package io.zerohop.device;

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
 */
public interface RowHashBatch {
  /** How deep lists and structs may lie in one another. */
  int MAX_DEPTH = 16;

  /** The most columns of one table, those below others among them. */
  int MAX_COLUMNS = 4096;

  /** Where combining begins, by kind. */
  long ROW = 0x726f77L;

  long FIXED = 0x6669786564L;
  long STRING = 0x737472696e67L;
  long LIST = 0x6c697374L;
  long STRUCT = 0x737472756374L;

  /** The hash of what is null. */
  long NULL = 0x6e756c6cL;

  /**
   * Begins a table.
   *
   * @param columns at the top
   * @param slot what {@link #slot} says of its results
   * @throws IllegalStateException if columns of the table before are missing
   */
  void beginTable(int rows, int columns, int slot);

  /**
   * Adds a table that consists of other rows of the same columns as the table before.
   *
   * @param first its first row in these columns
   * @param slot what {@link #slot} says of its results
   * @throws IllegalStateException if columns of the table before are missing
   */
  void addRows(int first, int rows, int slot);

  /**
   * Adds a column of values of 1, 2, 4, 8 or 16 bytes.
   *
   * @param data a multiple of the width; of 8 for 16
   */
  void addFixed(int width, long data, long mask);

  /**
   * Adds a column of strings.
   *
   * @param characters to which the offsets count; aligned words that hold some of them are read
   *     whole
   * @param offsets one more than rows
   */
  void addString(long characters, long offsets, long mask);

  /**
   * Begins a column of lists; the one column of their items comes next.
   *
   * @param offsets one more than rows
   * @throws IllegalStateException if it lies deeper than {@link #MAX_DEPTH}
   */
  void beginList(long offsets, long mask);

  /**
   * Begins a column of structs; the columns of their fields come next.
   *
   * @throws IllegalStateException if it lies deeper than {@link #MAX_DEPTH}
   */
  void beginStruct(int fields, long mask);

  /** How many 64-bit results the tables so far will have. */
  int results();

  /** The slot of the table that a result belongs to. */
  int slot(int result);

  /** Whether there is nothing to do. */
  boolean isEmpty();

  /** Empties the list so that it can be filled again. */
  void clear();
}
