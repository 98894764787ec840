package io.zerohop.spark.rapids.setup;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** What it does with plans is seen by {@link CoalescePlanTest}, and on GPUs. */
class CoalesceRuleTest {
  private static final long MIB = 1L << 20;

  @Test
  void neighboursAreReadTogetherAndTasksAreAlike() {
    assertThat(CoalesceRule.tasks(new long[] {10, 10, 10, 10, 10, 10}, 40))
        .isEqualTo(List.of(3, 3));
    assertThat(CoalesceRule.tasks(new long[] {10, 10, 10, 10, 10, 10}, 60)).isEqualTo(List.of(6));
    assertThat(CoalesceRule.tasks(new long[] {1, 1, 90, 1, 1}, 60)).isEqualTo(List.of(2, 1, 2));
    assertThat(CoalesceRule.tasks(new long[] {0, 0, 0}, 60)).isEqualTo(List.of(3));
    assertThat(CoalesceRule.tasks(new long[] {}, 60)).isEmpty();
  }

  @RepeatedTest(50)
  void eachRangeIsInOneTaskAndNoTaskOfSeveralIsTooLarge(final RepetitionInfo repetition) {
    final Random random = new Random(repetition.getCurrentRepetition());
    final long[] bytes =
        random.longs(1 + random.nextInt(300), 0, 1 + random.nextInt(100)).toArray();
    final long target = 1 + random.nextInt(1_000);
    final List<Integer> counts = CoalesceRule.tasks(bytes, target);
    assertThat(counts.stream().mapToInt(Integer::intValue).sum()).isEqualTo(bytes.length);
    int from = 0;
    for (final int count : counts) {
      final long size = Arrays.stream(bytes, from, from + count).sum();
      assertThat(count == 1 || size <= target).as("%d of %d", size, target).isTrue();
      from += count;
    }
  }

  @Test
  void aTaskReadsLessWhereExecutorsWouldIdle() {
    assertThat(CoalesceRule.target(10_000 * MIB, 4, 256 * MIB, 1)).isEqualTo(256 * MIB);
    assertThat(CoalesceRule.target(400 * MIB, 4, 256 * MIB, 1)).isEqualTo(100 * MIB);
    assertThat(CoalesceRule.target(40 * MIB, 4, 256 * MIB, 1)).isEqualTo(32 * MIB);
    assertThat(CoalesceRule.target(0, 4, 1, 1)).isEqualTo(1);
  }

  @Test
  void groupsOfShufflesShareTheMaximum() {
    assertThat(CoalesceRule.target(10_000 * MIB, 4, 256 * MIB, 4)).isEqualTo(64 * MIB);
    assertThat(CoalesceRule.target(40 * MIB, 4, 256 * MIB, 4)).isEqualTo(32 * MIB);
    assertThat(CoalesceRule.target(40 * MIB, 4, 256 * MIB, 300)).isEqualTo(256 * MIB / 300);
    assertThat(CoalesceRule.target(40 * MIB, 4, 3, 5)).isEqualTo(1);
  }
}
