package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import ai.rapids.cudf.FakeGpu;
import com.nvidia.spark.rapids.jni.GpuRetryOOM;
import com.nvidia.spark.rapids.jni.GpuSplitAndRetryOOM;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.rapids.MapInput.Form;
import io.zerohop.spark.rapids.TestExchange.Store;
import io.zerohop.spark.rapids.format.PackedTableMaker;
import io.zerohop.spark.rapids.format.TableHeader;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import scala.Product2;
import scala.collection.Iterator;

/** Whatever fails, and wherever a task ends, nothing is left of it, and the next one goes well. */
class FaultTest {
  private static final List<Kind> KINDS = List.of(Kind.LONG, Kind.STRING, Kind.INTS);

  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  @TempDir java.nio.file.Path base;

  private static final class Broken extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  private TestExchange exchange(final Store store) {
    return new TestExchange(SPARK.context(), base, store, KINDS, 3, config -> config).packing(1000);
  }

  private interface Step {
    void run();
  }

  /** How many allocations a step makes, which are some. */
  private static int allocations(final Step step) {
    final int before = FakeGpu.allocations();
    step.run();
    final int allocations = FakeGpu.allocations() - before;
    assertThat(allocations).isPositive();
    return allocations;
  }

  /** Runs a step of which one allocation fails. */
  private static void failing(
      final int nth, final Supplier<? extends RuntimeException> failure, final Step step) {
    FakeGpu.failAllocation(nth, failure);
    step.run();
    assertThat(FakeGpu.failurePending()).as("allocation %d was not made", nth).isFalse();
  }

  @EveryStoreAndForm
  void anyAllocationMayFailWhileAMapTaskWrites(final Store store, final Form form) {
    try (TestExchange exchange = exchange(store)) {
      final MapInput first = exchange.input(form, 0.2, true, 30, 20);
      final int steps = allocations(() -> exchange.write(new TestTask(), first));
      for (int step = 1; step <= steps; step++) {
        final MapInput input = exchange.input(form, 0.2, false, 30, 20);
        failing(
            step,
            Broken::new,
            () ->
                assertThatThrownBy(() -> exchange.write(new TestTask(), input))
                    .isInstanceOf(Broken.class));
        exchange.checkIdle();
      }
      exchange.check();
    }
  }

  @EveryStoreAndForm
  void anyAllocationMayFailWhileAReduceTaskReads(final Store store, final Form form) {
    try (TestExchange exchange = exchange(store)) {
      exchange.write(form, 0.2, 30, 20);
      exchange.write(form, 0.2, 10);
      final int steps = allocations(() -> exchange.read(0, 3));
      for (int step = 1; step <= steps; step++) {
        failing(
            step,
            Broken::new,
            () -> assertThatThrownBy(() -> exchange.read(0, 3)).isInstanceOf(Broken.class));
        exchange.checkIdle();
      }
      exchange.check();
    }
  }

  @ParameterizedTest
  @CsvSource({"DEVICE, KUDO", "DEVICE, PACKED", "HOST, KUDO", "HOST, PACKED", "FILES, KUDO"})
  void aReduceTaskDoesAgainWhatFindsNoMemory(final Store store, final Form form) {
    try (TestExchange exchange = exchange(store)) {
      exchange.write(form, 0.2, 30, 20);
      exchange.write(form, 0.2, 10);
      final int steps = allocations(() -> exchange.read(0, 3));
      for (int step = 1; step <= steps; step++) {
        failing(
            step, () -> new GpuRetryOOM("once"), () -> assertThat(exchange.read(0, 3)).hasSize(60));
      }
      exchange.check();
    }
  }

  @ParameterizedTest
  @EnumSource(Store.class)
  void aMapTaskDoesAgainWhatFindsNoMemory(final Store store) {
    try (TestExchange exchange = exchange(store)) {
      final MapInput first = exchange.input(Form.KUDO, 0.2, true, 30);
      final int steps = allocations(() -> exchange.write(new TestTask(), first));
      for (int step = 1; step <= steps; step++) {
        final MapInput next = exchange.input(Form.KUDO, 0.2, true, 30);
        failing(step, () -> new GpuRetryOOM("once"), () -> exchange.write(new TestTask(), next));
      }
      exchange.check();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void batchesBecomeSmallerWhereThereIsNoRoomForThem(final Form form) {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      exchange.write(form, 0.2, 30, 20);
      failing(
          1,
          () -> new GpuSplitAndRetryOOM("split"),
          () -> assertThat(exchange.read(0, 3)).hasSize(50));
      failing(
          2, // While what has arrived is still there.
          () -> new GpuSplitAndRetryOOM("split"),
          () -> assertThat(exchange.read(0, 3)).hasSize(50));
      exchange.readingBatchesOf(1000);
      failing(
          1,
          () -> new GpuSplitAndRetryOOM("split"),
          () ->
              assertThatThrownBy(() -> exchange.read(0, 3))
                  .isInstanceOf(GpuSplitAndRetryOOM.class));
      exchange.check();
    }
  }

  @ParameterizedTest
  @CsvSource({"DEVICE, KUDO", "DEVICE, PACKED", "HOST, KUDO", "HOST, PACKED", "FILES, PACKED"})
  void aMapTaskMayEndBetweenTwoBatches(final Store store, final Form form) {
    try (TestExchange exchange = exchange(store)) {
      final MapInput input = exchange.input(form, 0.2, false, 30, 20, 25);
      input.atTheEnd(
          () -> {
            throw new Broken();
          });
      assertThatThrownBy(() -> exchange.write(new TestTask(), input)).isInstanceOf(Broken.class);
      exchange.write(form, 0.2, 30);
      exchange.check();
    }
  }

  @ParameterizedTest
  @CsvSource({"DEVICE, KUDO", "DEVICE, PACKED", "HOST, KUDO", "FILES, PACKED"})
  void aReduceTaskMayEndBeforeItHasReadEverything(final Store store, final Form form) {
    try (TestExchange exchange = exchange(store).readingBatchesOf(100)) {
      exchange.write(form, 0.2, 30, 20);
      for (int most = 0; most < 4; most++) {
        final int count = most;
        final TestTask task = new TestTask();
        task.run(
            () -> {
              final Iterator<Product2<Integer, ColumnarBatch>> batches =
                  exchange.reader(task, 0, 3);
              for (int i = 0; i < count && batches.hasNext(); i++) {
                batches.next()._2().close();
              }
              return batches.hasNext();
            });
        exchange.checkIdle();
      }
    }
  }

  @Test
  void aReaderOfATaskThatHasEndedGivesNothing() {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      exchange.write(Form.KUDO, 0.2, 30);
      final TestTask task = new TestTask();
      final Iterator<Product2<Integer, ColumnarBatch>> batches =
          task.run(() -> exchange.reader(task, 0, 3));
      assertThatThrownBy(batches::hasNext)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("ended");
    }
  }

  @ParameterizedTest
  @EnumSource(Store.class)
  void aTaskThatIsKilledStopsReading(final Store store) {
    try (TestExchange exchange = exchange(store)) {
      exchange.write(Form.KUDO, 0.2, 30);
      final TestTask task = new TestTask();
      assertThatThrownBy(
              () ->
                  task.run(
                      () -> {
                        final Iterator<Product2<Integer, ColumnarBatch>> batches =
                            exchange.reader(task, 0, 3);
                        task.kill();
                        return batches.hasNext();
                      }))
          .isInstanceOf(RuntimeException.class)
          .hasMessageContaining("cancelled");
      exchange.checkIdle();
      exchange.check();
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void anOutputThatIsLostIsAFailedFetch(final Form form) {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      exchange.write(form, 0.2, 30);
      exchange.node().remove(exchange.dependency().shuffleId(), 0);
      assertThatThrownBy(() -> exchange.read(0, 3)).isInstanceOf(FetchFailedException.class);
    }
  }

  /** In the header, which says how the rest is read, and behind it; of one batch and of three. */
  @ParameterizedTest
  @CsvSource({"KUDO, 0", "KUDO, 9", "KUDO, 40", "PACKED, 0", "PACKED, 40", "PACKED, 150"})
  void aBlockThatIsDamagedOnTheGpuIsAFailedFetch(final Form form, final int at) {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      if (form == Form.PACKED) {
        exchange.write(form, 0.2, 30, 20, 10); // Tables that are summed up together.
      } else {
        exchange.write(form, 0.2, 30);
      }
      TestNodes.eventually(
          "its copies have ended", () -> exchange.node().stats().outputs().pendingCommits() == 0);
      exchange.damage(1, at);
      assertThatThrownBy(() -> exchange.read(0, 3))
          .isInstanceOf(FetchFailedException.class)
          .hasMessageContaining("CRC32C is");
      exchange.checkIdle();
      exchange.checkPartitions(0, 2);
      exchange.damage(1, at);
      exchange.check();
    }
  }

  @ParameterizedTest
  @CsvSource({"neither of the two forms, damaged", "KUD0, damaged", "'', empty"})
  void aBlockThatIsDamagedOnItsWayIsAFailedFetch(final String bytes, final String what) {
    try (TestExchange exchange = exchange(Store.FILES)) {
      exchange.write(Form.KUDO, 0.2, 30);
      exchange.receivingFrom(
          (source, blocks, sink) ->
              blocks.forEach(
                  block -> sink.arrived(block, payload(bytes.getBytes(StandardCharsets.UTF_8)))));
      assertThatThrownBy(() -> exchange.read(0, 3))
          .isInstanceOf(FetchFailedException.class)
          .hasMessageContaining(what)
          .hasMessageContaining("executor driver");
    }
  }

  /** Its last column has an entry below it, says its metadata, where there is none. */
  @Test
  void aTableThatCudfCannotReadIsAFailedFetch() {
    final ByteBuffer packed = ByteBuffer.allocate(1024);
    final PackedTable good =
        PackedTableMaker.pack(
            List.of(PackedTableMaker.Kind.of(PackedTableMaker.INT64, false)),
            List.of(List.of(1L, 2L)),
            packed);
    final byte[] metadata = good.metadata().clone();
    metadata[metadata.length - 8] = 1;
    final List<PackedTable> tables =
        List.of(new PackedTable(good.rows(), metadata, good.bytes(), good.bounds()));
    final ByteBuffer block = ByteBuffer.allocate(TableHeader.bytes(tables) + (int) good.bytes());
    TableHeader.write(tables, block);
    block.put(packed.flip());
    try (TestExchange exchange = exchange(Store.FILES)) {
      exchange.write(Form.PACKED, 0.2, 30);
      exchange.receivingFrom(
          (source, blocks, sink) ->
              blocks.forEach(each -> sink.arrived(each, payload(block.array()))));
      assertThatThrownBy(() -> exchange.read(0, 3))
          .isInstanceOf(FetchFailedException.class)
          .hasMessageContaining("do not lie within it");
    }
  }

  private static Transport.Payload payload(final byte[] bytes) {
    return new Transport.Payload() {
      @Override
      public long bytes() {
        return bytes.length + 1L; // Compressed, even nothing has some.
      }

      @Override
      public InputStream open(final BooleanSupplier ended) {
        return new ByteArrayInputStream(bytes);
      }

      @Override
      public void release() {}
    };
  }

  @ParameterizedTest
  @EnumSource(names = {"KUDO", "PACKED"})
  void aTaskMayEndWhileAThreadOfItReads(final Form form) throws Exception {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      exchange.write(form, 0.2, 30);
      TestNodes.eventually(
          "its copies have ended", () -> exchange.node().stats().outputs().pendingCommits() == 0);
      final CountDownLatch isReading = new CountDownLatch(1);
      final CountDownLatch hasEnded = new CountDownLatch(1);
      final TestTask task = new TestTask();
      final AtomicReference<Throwable> refused = new AtomicReference<>();
      final Thread reading =
          task.run(
              () -> {
                final Iterator<Product2<Integer, ColumnarBatch>> batches =
                    exchange.reader(task, 0, 3);
                FakeGpu.failAllocation(
                    1,
                    () -> {
                      isReading.countDown();
                      await(hasEnded);
                      return new GpuRetryOOM("once");
                    });
                final Thread other =
                    new Thread(() -> refused.set(catchThrowable(batches::hasNext)));
                other.start();
                await(isReading);
                return other;
              });
      assertThat(exchange.node().stats().leases().open()).as("it is read yet").isPositive();
      hasEnded.countDown();
      reading.join();
      assertThat(refused.get())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("has ended");
      exchange.checkIdle();
    }
  }

  /** The end of a task releases what was not handed out while a thread of it asks for that. */
  @Test
  void aBatchThatIsReleasedIsNotHandedOut() throws Exception {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      exchange.write(Form.KUDO, 0.2, 30);
      final TestTask task = new TestTask();
      final AtomicReference<Throwable> refused = new AtomicReference<>();
      final CountDownLatch isReleasing = new CountDownLatch(1);
      final Thread reading =
          task.run(
              () -> {
                final Iterator<Product2<Integer, ColumnarBatch>> batches =
                    exchange.reader(task, 0, 3);
                assertThat(batches.hasNext()).isTrue();
                final Thread other =
                    new Thread(
                        () -> {
                          await(isReleasing);
                          refused.set(catchThrowable(batches::next));
                        });
                FakeGpu.beforeColumnCloses(
                    () -> {
                      isReleasing.countDown();
                      TestNodes.eventually(
                          "it has a batch or waits for the release",
                          () ->
                              other.getState() == Thread.State.WAITING
                                  || other.getState() == Thread.State.TERMINATED);
                    });
                other.start();
                return other;
              });
      reading.join();
      assertThat(refused.get()).isNotNull().hasMessageContaining("has ended");
      exchange.checkIdle();
    }
  }

  @Test
  void aBatchThatCannotBeReleasedKeepsNoLease() {
    final TestExchange exchange = exchange(Store.DEVICE);
    exchange.write(Form.KUDO, 0.2, 30);
    final TestTask task = new TestTask();
    assertThatThrownBy(
            () ->
                task.run(
                    () -> {
                      final boolean found = exchange.reader(task, 0, 3).hasNext();
                      FakeGpu.beforeColumnCloses(
                          () -> {
                            throw new Broken();
                          });
                      return found;
                    }))
        .satisfies(e -> assertThat(e.getSuppressed()).hasAtLeastOneElementOfType(Broken.class));
    exchange.checkIdle();
    assertThatThrownBy(exchange::close).hasMessageContaining("columns"); // Which did not close.
  }

  private TestExchange exchange(final boolean blockChecksums) {
    return new TestExchange(
        SPARK.context(),
        base,
        Store.DEVICE,
        KINDS,
        3,
        config -> config.set("checksum.enabled", blockChecksums));
  }

  /** Spark ends the executor for what a task throws, and not for what is thrown at its end. */
  @ParameterizedTest
  @CsvSource({
    "KUDO, true, false",
    "KUDO, false, true",
    "PACKED, true, false",
    "PACKED, false, true"
  })
  void aMapTaskWhoseWorkNeverEndsEndsTheExecutor(
      final Form form, final boolean blockChecksums, final boolean rowChecksum) {
    final TestExchange exchange = exchange(blockChecksums);
    if (rowChecksum) {
      exchange.withRowChecksum();
    }
    exchange.stick();
    final MapInput input = exchange.input(form, 0.2, false, 30);
    assertThatThrownBy(() -> exchange.write(new TestTask(), input))
        .isInstanceOf(InternalError.class)
        .hasMessageContaining("never end");
    exchange.abandon();
  }

  @ParameterizedTest
  @CsvSource({"KUDO, true", "KUDO, false", "PACKED, true", "PACKED, false"})
  void aReduceTaskWhoseWorkNeverEndsEndsTheExecutor(final Form form, final boolean checksums) {
    final TestExchange exchange = exchange(checksums);
    exchange.write(form, 0.2, 30);
    TestNodes.eventually(
        "its copies have ended", () -> exchange.node().stats().outputs().pendingCommits() == 0);
    exchange.stick();
    assertThatThrownBy(() -> exchange.read(0, 3))
        .isInstanceOf(InternalError.class)
        .hasMessageContaining("never end");
    assertThat(exchange.node().stats().leases().open()).as("the GPU may read it").isPositive();
    exchange.abandon();
  }

  private static void await(final CountDownLatch latch) {
    try {
      assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aBatchOfAnotherKindIsRefused() {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      final MapInput input = exchange.input(Form.UNSPLIT, 0.2, false, 30);
      assertThatThrownBy(() -> exchange.write(new TestTask(), input))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("GpuColumnVector")
          .hasMessageContaining("spark.zerohop.rapids.enabled=false");
    }
  }

  @Test
  void anOutputOfAShuffleThatHasEndedIsNotPublished() {
    try (TestExchange exchange = exchange(Store.DEVICE)) {
      final MapInput input = exchange.input(Form.PACKED, 0.2, false, 30);
      input.atTheEnd(() -> exchange.node().unregisterShuffle(exchange.dependency().shuffleId()));
      assertThatThrownBy(() -> exchange.write(new TestTask(), input))
          .hasMessageContaining("unregistered");
      assertThat(TestNodes.outputs(exchange.node())).isZero();
    }
  }
}
