package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.cuda.CudaCopyBatch.RangeCutter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RangeCutterTest {
  @Test
  void rangesCoverTheListInOrderAndCostAboutTheSame() {
    final Random random = new Random(1);
    for (int round = 0; round < 2_000; round++) {
      final int[] lengths =
          random.ints(1 + random.nextInt(200), 1, 1 + (1 << random.nextInt(22))).toArray();
      check(lengths, 1 + random.nextInt(500));
    }
  }

  @Test
  void oneLongCopyIsCutInside() {
    assertThat(check(new int[] {1 << 20}, 64)).isEqualTo(64);
  }

  @Test
  void aTinyListHasFewRanges() {
    assertThat(check(new int[] {1, 1, 1}, 300)).isLessThanOrEqualTo(3);
  }

  private static int check(final int[] lengths, final int wanted) {
    long bytes = 0;
    for (final int length : lengths) {
      bytes += length;
    }
    final long cost = RangeCutter.cost(bytes, lengths.length);
    final ByteBuffer to =
        ByteBuffer.allocate((wanted + 1) * RangeCutter.ENTRY_BYTES).order(ByteOrder.nativeOrder());
    final int ranges = RangeCutter.cut(copy -> lengths[copy], lengths.length, cost, wanted, to, 0);
    assertThat(ranges).isBetween(1, wanted);
    int copy = 0;
    int offset = 0;
    assertThat(to.getInt(0)).isZero();
    assertThat(to.getInt(4)).isZero();
    for (int range = 1; range <= ranges; range++) {
      final int nextCopy = to.getInt(range * 8);
      final int nextOffset = to.getInt(range * 8 + 4);
      assertThat(nextCopy > copy || nextCopy == copy && nextOffset > offset)
          .as("ranges are not empty")
          .isTrue();
      if (range < ranges) {
        assertThat(nextCopy).isLessThan(lengths.length);
        assertThat(nextOffset).isLessThan(lengths[nextCopy]);
      }
      long own = -offset + (long) nextOffset;
      for (int i = copy; i < nextCopy; i++) {
        own += lengths[i] + RangeCutter.COPY_COST_BYTES;
      }
      final int slack = 2 * (RangeCutter.COPY_COST_BYTES + 16);
      assertThat(own).isLessThanOrEqualTo(cost / wanted + 1 + slack);
      copy = nextCopy;
      offset = nextOffset;
    }
    assertThat(copy).isEqualTo(lengths.length);
    assertThat(offset).isZero();
    return ranges;
  }
}
