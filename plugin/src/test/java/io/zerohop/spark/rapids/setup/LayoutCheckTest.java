package io.zerohop.spark.rapids.setup;

import static org.assertj.core.api.Assertions.assertThat;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.FakeGpu;
import ai.rapids.cudf.FakeMetadata;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.GpuRetryOOM;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.PackedColumns;
import io.zerohop.spark.rapids.setup.RapidsLatch.LayoutCheck;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What an executor finds out about the cudf that it has. */
class LayoutCheckTest {
  @BeforeEach
  void begin() {
    FakeGpu.begin(1 << 20);
  }

  @AfterEach
  void asItIsForOthers() {
    FakeMetadata.play(FakeMetadata.COUNTS);
    LayoutCheck.run(RapidsClasses.get(), true);
    assertThat(isTrusted()).isTrue();
    FakeGpu.checkNothingIsLeft();
  }

  /** Whether metadata of the cudf that is played is read. */
  private static boolean isTrusted() {
    try (ColumnVector column = ColumnVector.fromInts(1, 2);
        Table table = new Table(column)) {
      final ContiguousTable packed = table.contiguousSplit()[0];
      final ByteBuffer direct = packed.getMetadataDirectBuffer().duplicate();
      final byte[] metadata = new byte[direct.remaining()];
      direct.get(metadata);
      packed.close();
      return PackedColumns.parse(metadata) != null;
    }
  }

  @Test
  void bothLayoutsThatAreKnownAreRead() {
    for (final FakeMetadata release : new FakeMetadata[] {FakeMetadata.STUB, FakeMetadata.COUNTS}) {
      FakeMetadata.play(release);
      LayoutCheck.run(RapidsClasses.get(), true);
      assertThat(isTrusted()).as("%s", release).isTrue();
    }
  }

  @Test
  void anotherOneIsNotTrusted() {
    FakeMetadata.play(FakeMetadata.SHIFTED);
    LayoutCheck.run(RapidsClasses.get(), true);
    FakeMetadata.play(FakeMetadata.COUNTS);
    assertThat(isTrusted()).isFalse();
  }

  @Test
  void aFailureIsNoKnowledge() {
    FakeGpu.failAllocation(4, () -> new IllegalStateException("no such thing"));
    assertThat(LayoutCheck.run(RapidsClasses.get(), false)).isFalse();
    assertThat(FakeGpu.failurePending()).isFalse();
    assertThat(isTrusted()).isFalse();
    // The next look decides.
    assertThat(LayoutCheck.run(RapidsClasses.get(), false)).isTrue();
    assertThat(isTrusted()).isTrue();
  }

  @Test
  void memoryThatIsShortForAMomentIsWaitedFor() {
    FakeGpu.failAllocation(2, () -> new GpuRetryOOM("not now"));
    LayoutCheck.run(RapidsClasses.get(), true);
    assertThat(FakeGpu.failurePending()).isFalse();
    assertThat(isTrusted()).isTrue();
  }
}
