package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.transport.ucx.engine.UcxMode;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Blocks come by messages. */
class UcxMessageTest extends UcxReads {
  UcxMessageTest() {
    super(UcxMode.MESSAGE);
  }

  /** The second one needs the proof that messages come, and no measurement. */
  @Test
  void anotherExecutorOfANodeThatIsKnownCostsLittle() {
    final AtomicLong tested = new AtomicLong();
    channels.onQuestion =
        question -> {
          if (question.get() == GetQuestions.TEST) {
            tested.addAndGet(question.getLong(question.position() + Long.BYTES));
          }
        };
    read(write(1));
    final long first = tested.getAndSet(0);
    try (ShuffleNode other = ShuffleNode.start(config("3").nodeId("node-1").build())) {
      TestBlocks.write(other, SHUFFLE, 0, BATCHES, PARTITIONS, MOST);
      read(TestBlocks.source("3", other.location(), SHUFFLE, 0, 1, BATCHES, PARTITIONS, MOST));
      other.unregisterShuffle(SHUFFLE);
    }
    assertThat(tested.get()).isPositive().isLessThan(first / 10);
  }
}
