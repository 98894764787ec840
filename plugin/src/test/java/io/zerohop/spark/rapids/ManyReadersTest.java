package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.ZerohopShuffleManager;
import io.zerohop.spark.rapids.MapInput.Form;
import io.zerohop.spark.rapids.TestExchange.Store;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.function.UnaryOperator;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import scala.Product2;
import scala.Tuple2;

/**
 * A task that has read by {@value #READERS} readers, one after the other, keeps no more of them
 * than with Spark's sort shuffle: {@code repartition(m).coalesce(n)}, cartesian products and unions
 * of many shuffles make such tasks. What is kept is written to the file that {@code
 * -Dzerohop.readers.out} names, as one line of JSON for each kind of reader.
 */
@Timeout(600)
class ManyReadersTest {
  private static final int READERS = 2_000;
  private static final int MAPS = 100;

  /** Readers that have made what a task makes once. */
  private static final int WARM = 20;

  /** How much more than with sort shuffle a task may keep. */
  private static final long MAX_BYTES = 2L << 20;

  private static long sort;

  @TempDir Path base;

  @BeforeAll
  static void measureSortShuffle() {
    sort = keptByRows(SortShuffleManager.class.getName());
  }

  @AfterAll
  static void forget() {
    sort = 0;
  }

  @Test
  void readersOfRowsLetGo() {
    check("rows", keptByRows(ZerohopShuffleManager.class.getName()));
  }

  @ParameterizedTest
  @EnumSource(
      value = Store.class,
      names = {"DEVICE", "HOST"})
  void readersOfRapidsLetGo(final Store store) {
    check("rapids-" + store.name().toLowerCase(Locale.ROOT), keptByRapids(store));
  }

  private static void check(final String what, final long kept) {
    record(what, kept);
    // What the JVM itself frees meanwhile may make sort shuffle's negative.
    assertThat(kept - Math.max(0, sort))
        .as("bytes of %s: %s kept, %s with sort shuffle", what, kept, sort)
        .isLessThan(MAX_BYTES);
  }

  private static void record(final String what, final long kept) {
    final String file = System.getProperty("zerohop.readers.out");
    if (file == null || file.isEmpty()) {
      return;
    }
    final String line =
        String.format(
            Locale.ROOT,
            "{\"readers\": \"%s\", \"count\": %d, \"blocks\": %d, \"kept_bytes\": %d,"
                + " \"sort_bytes\": %d, \"over_sort_bytes\": %d}%n",
            what,
            READERS,
            MAPS,
            kept,
            sort,
            kept - sort);
    try {
      Files.writeString(Path.of(file), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static SparkContext spark(final String manager) {
    return new SparkContext(
        new SparkConf(false)
            .setMaster("local[1]")
            .setAppName("many readers")
            .set("spark.ui.enabled", "false")
            .set("spark.shuffle.manager", manager));
  }

  private static long keptByRows(final String manager) {
    final SparkContext spark = spark(manager);
    try {
      return new JavaSparkContext(spark)
          .parallelize(Collections.nCopies(MAPS, 0), MAPS)
          .flatMapToPair(any -> records())
          .partitionBy(new HashPartitioner(READERS))
          .coalesce(1)
          .mapPartitions(ManyReadersTest::kept)
          .first();
    } finally {
      spark.stop();
    }
  }

  /** One record for each reader. */
  private static Iterator<Tuple2<Integer, Long>> records() {
    final List<Tuple2<Integer, Long>> records = new ArrayList<>();
    for (int key = 0; key < READERS; key++) {
      records.add(new Tuple2<>(key, (long) key));
    }
    return records.iterator();
  }

  private static Iterator<Long> kept(final Iterator<Tuple2<Integer, Long>> records) {
    long count = 0;
    long before = 0;
    while (records.hasNext()) {
      records.next();
      if (++count == WARM * MAPS) {
        before = liveHeap();
      }
    }
    assertThat(count).isEqualTo(READERS * MAPS);
    return List.of(liveHeap() - before).iterator();
  }

  private long keptByRapids(final Store store) {
    final int partitions = 10;
    final SparkContext spark = spark(SortShuffleManager.class.getName());
    try (TestExchange exchange =
        new TestExchange(
            spark, base, store, List.of(Kind.LONG), partitions, UnaryOperator.identity())) {
      for (int map = 0; map < MAPS; map++) {
        exchange.write(Form.KUDO, 0, partitions * 10);
      }
      final TestTask task = new TestTask();
      return task.run(
          () -> {
            long before = 0;
            for (int reader = 0; reader < READERS; reader++) {
              if (reader == WARM) {
                before = liveHeap();
              }
              final int partition = reader % partitions;
              final var batches = exchange.reader(task, partition, partition + 1);
              while (batches.hasNext()) {
                close(batches.next());
              }
            }
            return liveHeap() - before;
          });
    } finally {
      spark.stop();
    }
  }

  private static void close(final Product2<Integer, ColumnarBatch> batch) {
    batch._2().close();
  }

  private static long liveHeap() {
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 4; i++) {
      System.gc();
      least = Math.min(least, ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
    }
    return least;
  }
}
