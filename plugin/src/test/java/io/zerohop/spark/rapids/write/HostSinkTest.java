package io.zerohop.spark.rapids.write;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.rapids.cudf.FakeGpu;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.rapids.write.TableSink.OutputBatch;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class HostSinkTest {
  /** A batch of one block of bytes, whose headers cannot be made. */
  private static final class Batch implements OutputBatch {
    @Override
    public boolean isEmpty() {
      return false;
    }

    @Override
    public long bytes() {
      return 100;
    }

    @Override
    public long[] layOut(final long first, final Placing placing) {
      return new long[] {first, first + bytes()};
    }

    @Override
    public int partitions() {
      return 1;
    }

    @Override
    public PackSource headers() {
      throw new IllegalStateException("no headers");
    }

    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      throw new AssertionError("it lies on the GPU");
    }
  }

  @Test
  void aBatchWhoseHeadersFailLeavesNoMemory() throws Exception {
    FakeGpu.begin(1 << 20);
    final MapOutput output = new MapOutputFiles().newOutput(null, 1, 0, 1, Tier.HOST);
    try (TableSink sink = TableSink.begin(output, null, Duration.ZERO, 1, false, 0)) {
      assertThatThrownBy(() -> sink.append(new Batch())).hasMessage("no headers");
    }
    FakeGpu.checkNothingIsLeft();
  }
}
