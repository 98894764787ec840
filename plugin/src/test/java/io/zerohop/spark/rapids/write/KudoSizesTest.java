package io.zerohop.spark.rapids.write;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.rapids.format.KudoLayout;
import io.zerohop.spark.rapids.write.KudoBatch.KudoSizes;
import org.junit.jupiter.api.Test;

/** Against what cudf's packed tables take: each of their buffers a multiple of 64 bytes. */
class KudoSizesTest {
  private static final int[] ROWS = {0, 100, 100, 101};

  /** Kudo blocks of these lengths. */
  private static KudoLayout blocks(final int... lengths) {
    final int[] starts = new int[lengths.length + 1];
    for (int i = 0; i < lengths.length; i++) {
      starts[i + 1] = starts[i] + lengths[i];
    }
    return new KudoLayout(ROWS, starts);
  }

  @Test
  void columnsOfFixedWidthAreExact() {
    final KudoSizes sizes = new KudoSizes(new int[] {8, 4}, 0, 0, 0);
    assertThat(sizes.packed(blocks(28 + 1 + 1203, 0, 28 + 1 + 15)))
        .containsExactly(832 + 448, 0, 64 + 64);
  }

  @Test
  void masksOfNullsCount() {
    final KudoSizes sizes = new KudoSizes(new int[] {8}, 1, 0, 0);
    assertThat(sizes.packed(blocks(28 + 1 + 16 + 800, 0, 28 + 1 + 3 + 8)))
        .containsExactly(832 + 64, 0, 64 + 64);
  }

  @Test
  void charactersAreWhatIsLeftOfABlock() {
    final KudoSizes sizes = new KudoSizes(new int[] {8}, 0, 1, 0);
    final int block = 28 + 1 + 800 + 4 * 101 + 1000;
    // Values, offsets and characters.
    assertThat(sizes.packed(blocks(block, 0, 28 + 1 + 8 + 8)))
        .containsExactly(832 + 448 + 1024, 0, 64 + 64);
  }

  @Test
  void severalStringsAndNestedColumnsAreReckonedWithHalfAMultipleForEach() {
    final int block = 28 + 1 + 2 * 4 * 101 + 1000;
    assertThat(new KudoSizes(new int[] {}, 0, 2, 0).packed(blocks(block, 0, 40))[0])
        .isEqualTo(2 * 448 + 1024 + 32);
    assertThat(new KudoSizes(new int[] {8}, 0, 0, 1).packed(blocks(29 + 800 + 500, 0, 40))[0])
        .isEqualTo(832 + 500 + 64);
  }
}
