package io.zerohop.device;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;

/** Pieces of columns of random lengths, and what they are together, computed value by value. */
final class SpliceRound {
  private static final int PIECES = 9;

  private final byte[] sources;
  private final byte[] expected;
  private final List<int[]> offsets = new ArrayList<>();
  private final List<List<int[]>> bits = new ArrayList<>();

  /** Each piece has at most so many values. */
  SpliceRound(final Random random, final int most) {
    final ByteBuffer from = buffer();
    final ByteBuffer to = buffer();
    for (int piece = 0; piece < PIECES; piece++) {
      final int count = random.nextInt(most);
      final int delta = random.nextInt();
      offsets.add(new int[] {from.position(), to.position(), count, delta});
      for (int i = 0; i < count; i++) {
        final int value = random.nextInt();
        from.putInt(value);
        to.putInt(value + delta);
      }
    }
    for (int column = 0; column < 3; column++) {
      column(random, most, from, to);
    }
    sources = taken(from);
    expected = taken(to);
  }

  private void column(
      final Random random, final int most, final ByteBuffer from, final ByteBuffer to) {
    final List<int[]> runs = new ArrayList<>(List.of(new int[] {to.position(), 0}));
    final BitSet all = new BitSet();
    int total = 0;
    for (int piece = 0; piece < PIECES; piece++) {
      final int count = 1 + random.nextInt(most);
      final boolean ones = random.nextInt(4) == 0;
      runs.add(new int[] {ones ? -1 : from.position(), count});
      int word = 0;
      for (int i = 0; i < count; i++) {
        final boolean set = ones || random.nextBoolean();
        all.set(total + i, set);
        word |= set ? 1 << i : 0;
        if (!ones && (i % 32 == 31 || i == count - 1)) {
          // What is behind the last bit must not be taken over.
          from.putInt(i % 32 == 31 ? word : word | -2 << i);
          word = 0;
        }
      }
      total += count;
    }
    for (int bit = 0; bit < total; bit += 32) {
      int word = 0;
      for (int i = 0; i < 32; i++) {
        word |= all.get(bit + i) ? 1 << i : 0;
      }
      to.putInt(word);
    }
    bits.add(runs);
  }

  private static ByteBuffer buffer() {
    return ByteBuffer.allocate(2 << 20).order(ByteOrder.nativeOrder());
  }

  private static byte[] taken(final ByteBuffer from) {
    final byte[] bytes = new byte[from.position()];
    from.flip().get(bytes);
    return bytes;
  }

  byte[] sources() {
    return sources;
  }

  byte[] expected() {
    return expected;
  }

  void fill(final SpliceBatch batch, final long from, final long to) {
    for (final int[] piece : offsets) {
      batch.addOffsets(from + piece[0], to + piece[1], piece[2], piece[3]);
    }
    for (final List<int[]> column : bits) {
      batch.beginBits(to + column.get(0)[0]);
      for (final int[] run : column.subList(1, column.size())) {
        batch.addBits(run[0] < 0 ? 0 : from + run[0], run[1]);
      }
    }
  }
}
