package io.zerohop.spark.task;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import java.io.IOException;
import java.util.List;
import org.apache.spark.TaskKilledException;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import scala.Option;

class FailureOutcomeTest {
  private static final Block BLOCK = new Block(3, 7, 2, 5, 100);

  private final BlockManagerId owner = BlockManagerId.apply("1", "host", 7337, Option.empty());
  private final BlockFetchException damaged =
      new BlockFetchException(
          BLOCK,
          new BlockSource("1", null, "host", owner, List.of(BLOCK)),
          Message.of("a damaged block"),
          null);

  @Test
  void aBlockThatIsNotReadHasItsMapTaskRunAgain() {
    assertThatThrownBy(() -> FailureOutcome.raise((Exception) damaged))
        .isInstanceOfSatisfying(
            FetchFailedException.class,
            failed -> {
              assertThat(failed.getMessage()).contains("a damaged block");
              assertThat(failed.toTaskFailedReason().toString())
                  .contains(owner.toString(), "3", "7", "2", "5");
            });
  }

  /** As Kryo does, and Spark's streams of Java objects. */
  @Test
  void alsoBehindWhatASerializerMadeOfIt() {
    final Exception wrapped =
        new IllegalStateException(
            "while a field was read", new IOException("in a stream", damaged));
    assertThatThrownBy(() -> FailureOutcome.raise(wrapped))
        .isInstanceOf(FetchFailedException.class)
        .hasMessageContaining("a damaged block");
  }

  @Test
  void otherFailuresStayWhatTheyAre() {
    final Exception user = new IOException("of the user's own", new RuntimeException("deeper"));
    assertThatThrownBy(() -> FailureOutcome.raise(user)).isSameAs(user);
    final Exception killed = new TaskKilledException("another attempt succeeded");
    assertThatThrownBy(() -> FailureOutcome.raise(killed)).isSameAs(killed);
  }

  @Test
  void aCircleOfCausesEnds() {
    final Exception first = new IllegalStateException("first");
    final Exception second = new IllegalStateException("second", first);
    first.initCause(second);
    assertThatThrownBy(() -> FailureOutcome.raise(second)).isSameAs(second);
  }
}
