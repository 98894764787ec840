package io.zerohop.spark.rapids.write;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.rapids.write.TableBatch.TableSizes;
import org.junit.jupiter.api.Test;

class TableSizesTest {
  private final TableSizes sizes = new TableSizes(4);

  @Test
  void onlyPartitionsWithRowsHaveASize() {
    sizes.add(1, 64);
    sizes.add(3, 1000);
    sizes.add(1, 128);
    assertThat(sizes.toArray()).containsExactly(0, 192, 0, 1000);
    assertThat(sizes.total()).isEqualTo(1192);
  }

  @Test
  void rowsWithoutBytesAreAskedForAndDoNotCount() {
    sizes.add(0, 0);
    sizes.add(2, 0);
    sizes.add(2, 0);
    assertThat(sizes.toArray()).containsExactly(100, 0, 200, 0);
    assertThat(sizes.total()).isZero();
  }

  @Test
  void whatWasHandedOutDoesNotChange() {
    final long[] before = sizes.toArray();
    sizes.add(0, 8);
    assertThat(before).containsOnly(0);
  }
}
