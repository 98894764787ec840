package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PoolSizingTest {
  private static final long GIB = 1L << 30;
  private static final long MIB = 1L << 20;

  @Test
  void aContainerLeavesWhatHeapAndOverheadDoNotTake() {
    final long size = PoolSizing.defaultBytes(OptionalLong.of(20 * GIB), 10 * GIB, 64 * GIB, GIB);
    assertThat(size).isEqualTo(9 * GIB);
  }

  @Test
  void aSmallHeapStillCountsTheFixedOverhead() {
    final long size = PoolSizing.defaultBytes(OptionalLong.of(4 * GIB), GIB, 64 * GIB, GIB);
    assertThat(size).isEqualTo(3 * GIB - 384 * MIB);
  }

  @Test
  void withoutALimitAQuarterOfWhatIsFree() {
    assertThat(PoolSizing.defaultBytes(OptionalLong.empty(), GIB, 64 * GIB, 40 * GIB))
        .isEqualTo(10 * GIB);
  }

  @Test
  void aLimitOverTheNodesMemoryIsNone() {
    assertThat(PoolSizing.defaultBytes(OptionalLong.of(Long.MAX_VALUE), GIB, 64 * GIB, 40 * GIB))
        .isEqualTo(10 * GIB);
  }

  @Test
  void itIsNeverTooSmallForCatalogs() {
    assertThat(PoolSizing.defaultBytes(OptionalLong.of(GIB), GIB, 64 * GIB, 40 * GIB))
        .isEqualTo(PoolSizing.LEAST_BYTES);
  }

  @Test
  void limitsAreReadFromEitherVersionOfControlGroups(@TempDir final Path folder)
      throws IOException {
    final Path second = Files.writeString(folder.resolve("memory.max"), "max\n");
    final Path first = Files.writeString(folder.resolve("limit_in_bytes"), "1073741824\n");
    final Path absent = folder.resolve("absent");
    assertThat(PoolSizing.containerLimit(List.of(absent, second))).isEmpty();
    assertThat(PoolSizing.containerLimit(List.of(second, first))).hasValue(GIB);
  }
}
