package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import ai.rapids.cudf.FakeGpu;
import ai.rapids.cudf.FakeMetadata;
import com.nvidia.spark.rapids.GpuSemaphore$;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.rapids.MapInput.Form;
import io.zerohop.spark.rapids.TestExchange.Store;
import io.zerohop.spark.rapids.format.PackedColumns;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import java.util.List;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import scala.Product2;
import scala.collection.Iterator;

/** Every row that map tasks write is read, whatever it is made of and wherever it lies. */
class ExchangeTest {
  private static final List<Kind> PLAIN = List.of(Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.BOOLEAN);
  private static final List<Kind> STRINGS = List.of(Kind.LONG, Kind.STRING, Kind.STRING);
  private static final List<Kind> NESTED = List.of(Kind.INTS, Kind.STRUCT, Kind.STRINGS);

  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  @TempDir java.nio.file.Path base;

  private TestExchange exchange(final Store store, final List<Kind> kinds, final int partitions) {
    return new TestExchange(SPARK.context(), base, store, kinds, partitions, config -> config);
  }

  @EveryStoreAndForm
  void everyRowIsRead(final Store store, final Form form) {
    for (final List<Kind> kinds : List.of(PLAIN, STRINGS, NESTED)) {
      for (final double nulls : new double[] {0, 0.3, 1}) {
        try (TestExchange exchange = exchange(store, kinds, 5)) {
          exchange.write(form, nulls, 40, 3);
          exchange.write(form, 0, 17);
          exchange.write(form, nulls);
          exchange.check();
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void everyRowIsReadWithoutChecksums(final Form form) {
    for (final List<Kind> kinds : List.of(PLAIN, STRINGS, NESTED)) {
      try (TestExchange exchange =
          new TestExchange(
              SPARK.context(),
              base,
              Store.DEVICE,
              kinds,
              5,
              config -> config.set("checksum.enabled", false))) {
        exchange.write(form, 0.3, 40, 3);
        exchange.write(form, 0, 17);
        exchange.check();
      }
    }
  }

  /** Whichever cudf this is: its layout is known, or is not and is left to cudf. */
  @ParameterizedTest
  @EnumSource
  void everyRowIsReadOfTheTablesOfAnyCudf(final FakeMetadata release) {
    FakeMetadata.play(release);
    PackedColumns.trust(release != FakeMetadata.SHIFTED);
    try {
      for (final Store store : Store.values()) {
        for (final List<Kind> kinds : List.of(PLAIN, STRINGS, NESTED)) {
          try (TestExchange exchange = exchange(store, kinds, 5)) {
            exchange.write(Form.PACKED, 0.3, 40, 3);
            exchange.write(Form.PACKED, 0, 17);
            exchange.check();
          }
        }
      }
    } finally {
      FakeMetadata.play(FakeMetadata.COUNTS);
      PackedColumns.trust(true);
    }
  }

  @ParameterizedTest
  @EnumSource(Store.class)
  void rowsWithoutColumnsAreCounted(final Store store) {
    try (TestExchange exchange = exchange(store, List.of(Kind.INT), 3)) {
      exchange.write(Form.ROWS_ONLY, 0, 100, 20);
      exchange.write(Form.ROWS_ONLY, 0, 7);
      exchange.check();
    }
  }

  @ParameterizedTest
  @EnumSource(Store.class)
  void bothFormsOfBlocksAreReadTogether(final Store store) {
    try (TestExchange exchange = exchange(store, STRINGS, 4)) {
      exchange.write(Form.PACKED, 0.2, 30);
      exchange.write(Form.KUDO, 0.2, 30);
      exchange.write(Form.PACKED, 0.2, 30);
      exchange.check();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void manyPartitionsAndLittleAtATime(final Form form) {
    try (TestExchange exchange = exchange(Store.DEVICE, STRINGS, 300)) {
      exchange.packing(2000).readingBatchesOf(1000);
      exchange.write(form, 0.1, 700, 20);
      exchange.write(form, 0.1, 500);
      assertThat(exchange.read(0, 300)).hasSize(1220);
      exchange.checkPartitions(0, 1, 150, 299);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void blocksInGpuMemoryAreReadInPlace(final Form form) {
    try (TestExchange exchange = exchange(Store.DEVICE, STRINGS, 3)) {
      exchange.write(form, 0.2, 50);
      exchange.check();
      assertThat(exchange.node().fetches().moved(BlockPath.STAGED).blocks()).isZero();
      assertThat(exchange.node().fetches().moved(BlockPath.LOCAL).blocks()).isPositive();
      assertThat(exchange.metric("dataSize").value()).isPositive();
      assertThat(exchange.metric("dataReadSize").value()).isPositive();
    }
  }

  @Test
  void packedTablesOfManyMapOutputsAreOneTableByTwoAllocations() {
    for (final List<Kind> kinds : List.of(PLAIN, STRINGS, NESTED)) {
      try (TestExchange exchange = exchange(Store.DEVICE, kinds, 1)) {
        for (int map = 0; map < 4; map++) {
          exchange.write(Form.PACKED, 0.2, 30, 10);
        }
        final int before = FakeGpu.allocations();
        assertThat(exchange.read(0, 1)).hasSize(160);
        // As they arrive, for their checksums, and the table.
        assertThat(FakeGpu.allocations() - before).isEqualTo(2);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void aPeerReadsThemInPlaceAsWell(final Form form) {
    try (TestExchange exchange = exchange(Store.DEVICE, NESTED, 3).readByAPeer(base)) {
      exchange.write(form, 0.2, 50, 20);
      exchange.write(form, 0.2, 50);
      exchange.check();
      assertThat(exchange.peer().fetches().moved(BlockPath.PEER).blocks()).isPositive();
      assertThat(exchange.peer().fetches().moved(BlockPath.STAGED).blocks()).isZero();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void outputsArePublishedBeforeTheirCopiesHaveEnded(final Form form) {
    try (TestExchange exchange = exchange(Store.DEVICE, STRINGS, 3)) {
      exchange.write(form, 0.2, 50);
      exchange.write(form, 0.2, 50);
      exchange.check();
      assertThat(exchange.node().stats().outputs().asyncCommits()).isEqualTo(2);
    }
  }

  @Test
  void aMapStatusSaysTheSameInBothForms() {
    final long[] sizes = new long[3];
    for (final Form form : List.of(Form.KUDO, Form.PACKED)) {
      try (TestExchange exchange = exchange(Store.DEVICE, PLAIN, 3)) {
        final MapStatus status = exchange.write(form, 0.2, 500);
        for (int i = 0; i < sizes.length; i++) {
          assertThat(status.getSizeForBlock(i)).isPositive();
          if (form == Form.KUDO) {
            sizes[i] = status.getSizeForBlock(i);
          } else {
            assertThat(status.getSizeForBlock(i)).isEqualTo(sizes[i]);
          }
        }
      }
    }
  }

  @Test
  void rowChecksumsAreThoseOfTheRowsInEitherForm() {
    final long[] checksums = new long[5];
    for (int i = 0; i < checksums.length; i++) {
      try (TestExchange exchange = exchange(Store.DEVICE, NESTED, 3).withRowChecksum()) {
        // A pack for each table or slice, and all of them in one.
        exchange.packing(i % 2 == 1 ? 1 : 1 << 20);
        final Form form = i < 2 || i == 4 ? Form.KUDO : Form.PACKED;
        checksums[i] = exchange.write(form, 0.3, 50, i == 4 ? 51 : 50).checksumValue();
        exchange.check();
      }
    }
    assertThat(checksums[0])
        .isNotZero()
        .isEqualTo(checksums[1])
        .isEqualTo(checksums[2])
        .isEqualTo(checksums[3])
        .isNotEqualTo(checksums[4]);
  }

  @Test
  void everyKindOfColumnIsHashedAlikeInEitherForm() {
    for (final List<Kind> kinds : List.of(PLAIN, STRINGS, NESTED)) {
      for (final double nulls : new double[] {0, 0.3, 1}) {
        final long[] checksums = new long[2];
        for (final Form form : List.of(Form.KUDO, Form.PACKED)) {
          try (TestExchange exchange = exchange(Store.DEVICE, kinds, 7).withRowChecksum()) {
            checksums[form == Form.KUDO ? 0 : 1] =
                exchange.write(form, nulls, 400, 1).checksumValue();
            exchange.check();
          }
        }
        assertThat(checksums[0]).as("%s, nulls %s", kinds, nulls).isEqualTo(checksums[1]);
      }
    }
  }

  @Test
  void anExecutorWithoutKernelsReportsAChecksumOfTheAttempt() {
    for (final Store store : List.of(Store.HOST, Store.FILES)) {
      try (TestExchange exchange = exchange(store, PLAIN, 3).withRowChecksum()) {
        final long one = exchange.write(Form.KUDO, 0.3, 50).checksumValue();
        assertThat(exchange.write(Form.KUDO, 0.3, 50).checksumValue())
            .isNotZero()
            .isNotEqualTo(one);
        exchange.check();
      }
    }
  }

  @Test
  void theTaskHasTheGpuWhenItGetsABatch() {
    try (TestExchange exchange = exchange(Store.DEVICE, PLAIN, 1)) {
      exchange.write(Form.KUDO, 0, 10);
      final TestTask task = new TestTask();
      task.run(
          () -> {
            final Iterator<Product2<Integer, ColumnarBatch>> batches = exchange.reader(task, 0, 1);
            assertThat(GpuSemaphore$.MODULE$.isHeldBy(task.context())).isFalse();
            assertThat(batches.hasNext()).isTrue();
            assertThat(GpuSemaphore$.MODULE$.isHeldBy(task.context())).isTrue();
            try (ColumnarBatch batch = batches.next()._2()) {
              assertThat(TestExchange.rows(batch)).hasSize(10);
            }
            assertThat(batches.hasNext()).isFalse();
            return null;
          });
    }
  }
}
