package io.zerohop.shuffle.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class OwnerOrderTest {
  private static List<BlockSource> owners(final int count) {
    return IntStream.range(0, count)
        .mapToObj(i -> new BlockSource("owner" + i, null, i, List.of()))
        .toList();
  }

  @Test
  void readersThatStartTogetherBeginWithDifferentOwners() {
    final Map<BlockSource, Integer> first = new HashMap<>();
    for (long reader = 1_000; reader < 1_032; reader++) {
      first.merge(BlockSource.turned(owners(8), reader).get(0), 1, Integer::sum);
    }
    assertThat(first).hasSize(8).containsValue(4).doesNotContainValue(5);
  }

  @Test
  void atEveryMomentTheyAreWithDifferentOwners() {
    for (int place = 0; place < 5; place++) {
      final int at = place;
      assertThat(
              IntStream.range(0, 5)
                  .mapToObj(reader -> BlockSource.turned(owners(5), reader).get(at)))
          .doesNotHaveDuplicates();
    }
  }

  @Test
  void allAreVisitedOnce() {
    for (final long reader : new long[] {0, 3, 7, Long.MAX_VALUE, Long.MIN_VALUE, -1}) {
      assertThat(BlockSource.turned(owners(7), reader))
          .containsExactlyInAnyOrderElementsOf(owners(7));
    }
    assertThat(BlockSource.turned(List.of(), 4)).isEmpty();
  }
}
