package io.zerohop.spark.task;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.BlockSource;
import java.util.List;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.Seq;
import scala.collection.immutable.Nil$;

class ReduceTaskTest {
  private static final int OWNERS = 5;

  /** As the tracker lists them to every task. */
  @SuppressWarnings("unchecked")
  private static Iterator<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> listed() {
    return new AbstractIterator<>() {
      private int next;

      @Override
      public boolean hasNext() {
        return next < OWNERS;
      }

      @Override
      public Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>> next() {
        final String id = Integer.toString(next++);
        return new Tuple2<>(
            BlockManagerId.apply(id, "host", 7337, Option.empty()),
            (Seq<Tuple3<BlockId, Object, Object>>) (Seq<?>) Nil$.MODULE$);
      }
    };
  }

  private static List<String> order(final long attempt) {
    return ReduceTask.sources(listed(), attempt, 0).stream().map(BlockSource::executorId).toList();
  }

  @Test
  void tasksOfAStageVisitOwnersInOrdersOfTheirOwn() {
    assertThat(order(40)).containsExactly("0", "1", "2", "3", "4");
    assertThat(order(41)).containsExactly("1", "2", "3", "4", "0");
    assertThat(order(44)).containsExactly("4", "0", "1", "2", "3");
  }
}
