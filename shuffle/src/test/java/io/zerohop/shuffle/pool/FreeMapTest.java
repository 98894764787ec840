package io.zerohop.shuffle.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.pool.PoolSegment.FreeMap;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class FreeMapTest {
  private static final int UNITS = 512;

  /** Compares every answer with a bit for each unit. */
  @Test
  void agreesWithABitForEachUnit() {
    for (int seed = 0; seed < 40; seed++) {
      final Random random = new Random(seed);
      final FreeMap free = new FreeMap((long) UNITS * FreeMap.ALIGNMENT);
      final BitSet taken = new BitSet(UNITS);
      final List<int[]> ranges = new ArrayList<>();
      for (int step = 0; step < 3_000; step++) {
        if (random.nextInt(100) < 55) {
          final int length = 1 + random.nextInt(random.nextInt(8) == 0 ? UNITS : 24);
          final int smallest = smallestHole(taken, length);
          final long offset = free.allocate((long) length * FreeMap.ALIGNMENT);
          if (smallest < 0) {
            assertThat(offset).isEqualTo(-1);
          } else {
            final int at = (int) (offset / FreeMap.ALIGNMENT);
            assertThat(taken.get(at, at + length).isEmpty()).isTrue();
            assertThat(hole(taken, at)).as("best fit").isEqualTo(smallest);
            taken.set(at, at + length);
            ranges.add(new int[] {at, length});
          }
        } else if (!ranges.isEmpty()) {
          final int[] range = ranges.remove(random.nextInt(ranges.size()));
          free.free((long) range[0] * FreeMap.ALIGNMENT, (long) range[1] * FreeMap.ALIGNMENT);
          taken.clear(range[0], range[0] + range[1]);
        }
        assertThat(free.freeBytes())
            .isEqualTo((long) (UNITS - taken.cardinality()) * FreeMap.ALIGNMENT);
        assertThat(free.isEmpty()).isEqualTo(taken.isEmpty());
      }
    }
  }

  @Test
  void freeingTwiceIsNoticed() {
    final FreeMap free = new FreeMap(1024);
    free.allocate(512);
    free.free(0, 256);
    assertThatThrownBy(() -> free.free(0, 256)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> free.free(0, 512)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> free.free(768, 512)).isInstanceOf(IllegalStateException.class);
  }

  /** Length of the smallest hole that is long enough; -1 if there is none. */
  private static int smallestHole(final BitSet taken, final int length) {
    int best = -1;
    for (int at = taken.nextClearBit(0); at < UNITS; ) {
      final int size = hole(taken, at);
      if (size >= length && (best < 0 || size < best)) {
        best = size;
      }
      at = taken.nextClearBit(at + size);
    }
    return best;
  }

  private static int hole(final BitSet taken, final int at) {
    final int end = taken.nextSetBit(at);
    return (end < 0 ? UNITS : end) - at;
  }
}
