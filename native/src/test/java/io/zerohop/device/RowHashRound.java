package io.zerohop.device;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * Columns of random values, nested in one another, and the sums of their rows' hashes, computed
 * from the values alone. Below what is null lies what could have been there.
 */
final class RowHashRound {
  private static final int MAX_BYTES = 8 << 20;
  private static final int DEEPEST = 4;
  private static final long GAMMA = 0x9e3779b97f4a7c15L;

  private enum Kind {
    FIXED,
    STRING,
    LIST,
    STRUCT
  }

  private final Random random;
  private final int rows;
  private final ByteBuffer bytes = ByteBuffer.allocate(MAX_BYTES).order(ByteOrder.nativeOrder());
  private final List<Column> columns = new ArrayList<>();

  /** A column, its values, and where they lie from the beginning of the bytes on. */
  private final class Column {
    private final Kind kind;
    private final int width = 1 << random.nextInt(5);
    private final boolean[] nulls;
    private final byte[][] values;
    private final int[] offsets;
    private final List<Column> children = new ArrayList<>();
    private int dataAt;
    private int offsetsAt;
    private int maskAt = -1;

    Column(final Kind kind, final int count, final int depth) {
      this.kind = kind;
      this.nulls = new boolean[count];
      this.values = new byte[count][];
      this.offsets = new int[count + 1];
      if (random.nextBoolean()) {
        mask();
      }
      switch (kind) {
        case FIXED -> fixed();
        case STRING -> strings();
        case LIST -> {
          offsets(3);
          children.add(new Column(anyKind(depth + 1), offsets[count], depth + 1));
        }
        case STRUCT -> {
          for (int i = random.nextInt(4); i > 0; i--) {
            children.add(new Column(anyKind(depth + 1), count, depth + 1));
          }
        }
      }
    }

    private void mask() {
      align(4);
      maskAt = bytes.position();
      for (int row = 0; row < nulls.length; row += 32) {
        int word = random.nextInt();
        for (int i = row; i < Math.min(nulls.length, row + 32); i++) {
          nulls[i] = random.nextInt(4) == 0;
          word = nulls[i] ? word & ~(1 << i) : word | 1 << i;
        }
        bytes.putInt(word);
      }
    }

    private void fixed() {
      align(width);
      dataAt = bytes.position();
      for (int row = 0; row < values.length; row++) {
        values[row] = new byte[width];
        random.nextBytes(values[row]);
        bytes.put(values[row]);
      }
    }

    private void strings() {
      offsets(25);
      bytes.position(bytes.position() + random.nextInt(8));
      dataAt = bytes.position();
      bytes.position(dataAt + offsets[0]);
      for (int row = 0; row < values.length; row++) {
        values[row] = new byte[offsets[row + 1] - offsets[row]];
        random.nextBytes(values[row]);
        bytes.put(values[row]);
      }
    }

    /** Offsets need not begin at 0. */
    private void offsets(final int most) {
      align(4);
      offsetsAt = bytes.position();
      offsets[0] = random.nextInt(3);
      bytes.putInt(offsets[0]);
      for (int row = 0; row < nulls.length; row++) {
        offsets[row + 1] = offsets[row] + random.nextInt(most);
        bytes.putInt(offsets[row + 1]);
      }
    }

    /** Adds the column as it looks from a row on, which is a multiple of 32. */
    void fill(final RowHashBatch batch, final long base, final int row) {
      final long mask = maskAt < 0 ? 0 : base + maskAt + row / 8;
      switch (kind) {
        case FIXED -> batch.addFixed(width, base + dataAt + (long) width * row, mask);
        case STRING -> batch.addString(base + dataAt, base + offsetsAt + 4L * row, mask);
        case LIST -> {
          batch.beginList(base + offsetsAt + 4L * row, mask);
          children.get(0).fill(batch, base, 0);
        }
        case STRUCT -> {
          batch.beginStruct(children.size(), mask);
          children.forEach(child -> child.fill(batch, base, row));
        }
      }
    }

    /** The hash of one value; the numbers in front are those that the batch's description names. */
    long hash(final int row) {
      if (nulls[row]) {
        return RowHashBatch.NULL;
      }
      return switch (kind) {
        case FIXED -> sequence(RowHashBatch.FIXED + width, words(values[row]));
        case STRING -> {
          final long[] words = words(values[row]);
          final long[] all = new long[words.length + 1];
          all[0] = values[row].length;
          System.arraycopy(words, 0, all, 1, words.length);
          yield sequence(RowHashBatch.STRING, all);
        }
        case LIST -> {
          final long[] all = new long[1 + offsets[row + 1] - offsets[row]];
          all[0] = all.length - 1;
          for (int i = 1; i < all.length; i++) {
            all[i] = children.get(0).hash(offsets[row] + i - 1);
          }
          yield sequence(RowHashBatch.LIST, all);
        }
        case STRUCT ->
            sequence(RowHashBatch.STRUCT, children.stream().mapToLong(c -> c.hash(row)).toArray());
      };
    }
  }

  /** Columns of so many rows, of every kind at least one. */
  RowHashRound(final Random random, final int rows) {
    this.random = random;
    this.rows = rows;
    for (final Kind kind : Kind.values()) {
      columns.add(new Column(kind, rows, 0));
    }
    columns.add(new Column(anyKind(0), rows, 0));
  }

  private Kind anyKind(final int depth) {
    return Kind.values()[random.nextInt(depth == DEEPEST ? 2 : 4)];
  }

  private void align(final int to) {
    bytes.position((bytes.position() + to - 1) / to * to);
  }

  private static long[] words(final byte[] value) {
    final int count = (value.length + 7) / 8;
    final ByteBuffer padded =
        ByteBuffer.wrap(Arrays.copyOf(value, 8 * count)).order(ByteOrder.LITTLE_ENDIAN);
    final long[] words = new long[count];
    padded.asLongBuffer().get(words);
    return words;
  }

  private static long sequence(final long begin, final long... values) {
    long hash = begin;
    for (final long value : values) {
      long z = (hash ^ value) + GAMMA;
      z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
      z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
      hash = z ^ z >>> 31;
    }
    return hash;
  }

  byte[] bytes() {
    return Arrays.copyOf(bytes.array(), (bytes.position() + 7) / 8 * 8);
  }

  /** Adds rows from one on, which is a multiple of 32. */
  void fill(
      final RowHashBatch batch, final long base, final int from, final int count, final int slot) {
    batch.beginTable(count, columns.size(), slot);
    columns.forEach(column -> column.fill(batch, base, from));
  }

  /** The sum of the hashes of some rows. */
  long expected(final int from, final int count) {
    long sum = 0;
    for (int row = from; row < from + count; row++) {
      final int at = row;
      sum += sequence(RowHashBatch.ROW, columns.stream().mapToLong(c -> c.hash(at)).toArray());
    }
    return sum;
  }

  int rows() {
    return rows;
  }
}
