package io.zerohop.spark.rapids.format;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class KudoLayoutTest {
  private final List<String> runs = new ArrayList<>();

  private long[] layOut(final KudoLayout layout) {
    return layout.layOut(
        0,
        layout.partitions(),
        5_000,
        (offset, at, bytes) -> runs.add(offset + " to " + at + ": " + bytes));
  }

  @Test
  void partitionsWithoutRowsTakeNothing() {
    // Of 0, 2, 1, 0, 0, 3 and 0 rows; the serializer has a few bytes for empty ones.
    final KudoLayout layout =
        new KudoLayout(
            new int[] {0, 0, 2, 3, 3, 3, 6, 6}, new int[] {0, 32, 132, 182, 214, 246, 546, 578});
    assertThat(layout.partitions()).isEqualTo(7);
    assertThat(layout.rows()).isEqualTo(6);
    assertThat(layout.bytes(0, 7)).isEqualTo(450);
    assertThat(layOut(layout)).containsExactly(5000, 5000, 5100, 5150, 5150, 5150, 5450, 5450);
    assertThat(runs).containsExactly("32 to 5000: 150", "246 to 5150: 300");
  }

  @Test
  void aFullBatchIsOneRun() {
    final KudoLayout layout = new KudoLayout(new int[] {0, 1, 2}, new int[] {0, 40, 100});
    assertThat(layOut(layout)).containsExactly(5000, 5040, 5100);
    assertThat(runs).containsExactly("0 to 5000: 100");
  }

  @Test
  void nothingIsNoRun() {
    final KudoLayout layout = new KudoLayout(new int[] {0, 0, 0}, new int[] {0, 30, 60});
    assertThat(layOut(layout)).containsExactly(5000, 5000, 5000);
    assertThat(layout.bytes(0, 2)).isZero();
    assertThat(layout.ranges(10)).isEmpty();
    assertThat(runs).isEmpty();
  }

  @Test
  void rangesHaveUpToSoManyBytesOrOneBlock() {
    final KudoLayout layout =
        new KudoLayout(new int[] {0, 1, 2, 2, 3, 4, 5}, new int[] {0, 40, 100, 130, 400, 410, 420});
    assertThat(layout.ranges(100))
        .containsExactly(new int[] {0, 3}, new int[] {3, 4}, new int[] {4, 6});
    assertThat(layout.ranges(1)).hasSize(5);
    assertThat(layout.ranges(1000)).containsExactly(new int[] {0, 6});
  }

  @Test
  void aRangeIsLaidOutByItself() {
    final KudoLayout layout =
        new KudoLayout(new int[] {0, 1, 2, 2, 3, 4}, new int[] {0, 40, 100, 130, 150, 160});
    final long[] places =
        layout.layOut(
            1, 4, 5_000, (offset, at, bytes) -> runs.add(offset + " to " + at + ": " + bytes));
    assertThat(places).containsExactly(5000, 5000, 5060, 5060, 5080, 5080);
    assertThat(runs).containsExactly("40 to 5000: 60", "130 to 5060: 20");
  }
}
