package io.zerohop.gpu;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.udf;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.types.DataTypes;

/**
 * Sends rows where random numbers of their own say, and kills the other executor when some
 * consumers have read them and others have not. A map task that runs again sends its rows
 * elsewhere: unless Spark learns that from the row checksums and runs all consumers again, rows are
 * lost and doubled. Done with Spark's keys off, and on; and with the keys on and numbers that are
 * the same each time, where no consumer must run again. Needs two executors on one host, with one
 * task at a time each; with RAPIDS the rows come from the CPU and are exchanged on GPUs, without it
 * all is rows.
 */
public final class GpuChecksumApp {
  private static final String KEYS = "spark.sql.shuffle.orderIndependentChecksum.";
  private static final long LISTENER_LIMIT_MS = 30_000;
  private static final long EXECUTORS_LIMIT_S = 60;
  private static final int EXECUTORS = 2;
  private static final long ROWS = 40_000;
  private static final int MAPS = 4;
  private static final int READERS = 10;

  /** Of all rows; see {@link #query}. */
  private static final long STRINGS = 26_666;

  private static final long ITEMS = 80_000;
  private static final long FIELDS = 34_285;

  /** The reader that strikes: with two tasks at a time, about half of the others are done then. */
  private static final int STRIKER = 6;

  /** What is asked. */
  private enum Case {
    KEYS_OFF(false, false),
    KEYS_ON(true, false),
    SAME_ROWS(true, true);

    private final boolean keys;
    private final boolean same;

    Case(final boolean keys, final boolean same) {
      this.keys = keys;
      this.same = same;
    }

    /** Whether consumers that have succeeded must run again. */
    private boolean rollsBack() {
      return keys && !same;
    }

    private String label() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  private final SparkSession spark;
  private final TaskRepeats repeats = new TaskRepeats();
  private final boolean onGpu;

  private GpuChecksumApp(final SparkSession spark, final boolean onGpu) {
    this.spark = spark;
    this.onGpu = onGpu;
    spark.sparkContext().addSparkListener(repeats);
  }

  /**
   * Exits with 1 if it did not go as it must: with the keys all rows are right, and every consumer
   * that had succeeded ran again if rows had changed; otherwise none did.
   *
   * @param args an empty folder on the executors' host, a file for the results as JSON, and {@code
   *     gpu} or {@code rows}: what must carry the exchanges
   */
  public static void main(final String[] args) throws Exception {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final GpuChecksumApp app = new GpuChecksumApp(spark, args[2].equals("gpu"));
    final List<Map<String, Object>> results = new ArrayList<>();
    boolean good = true;
    for (final Case each : Case.values()) {
      final Map<String, Object> result = app.run(each, Path.of(args[0]).resolve(each.name()));
      results.add(result);
      good &= Boolean.TRUE.equals(result.get("as_it_must"));
      System.out.println(new ObjectMapper().writeValueAsString(result));
    }
    new ObjectMapper()
        .enable(SerializationFeature.INDENT_OUTPUT)
        .writeValue(Path.of(args[1]).toFile(), Map.of("rows", results));
    spark.stop();
    System.exit(good ? 0 : 1);
  }

  private Map<String, Object> run(final Case asked, final Path folder) throws Exception {
    final Path marker = Files.createDirectories(folder).resolve("struck");
    spark.conf().set(KEYS + "enabled", Boolean.toString(asked.keys));
    spark.conf().set(KEYS + "enableFullRetryOnMismatch", Boolean.toString(asked.keys));
    awaitExecutors();
    repeats.reset();
    final Dataset<Row> query = query(asked.same, folder.toString(), marker.toString());
    final long start = System.nanoTime();
    final Row row = query.collectAsList().get(0);
    final double seconds = (System.nanoTime() - start) / 1e9;
    spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
    final boolean right = isRight(row);
    final String plan = query.queryExecution().executedPlan().toString().toLowerCase(Locale.ROOT);
    final boolean gpu = plan.contains("gpuhashpartitioning");
    final int done = repeats.done();
    final int again = repeats.repeated();
    final Map<String, Object> result = new LinkedHashMap<>();
    result.put("case", asked.label());
    result.put("gpu_exchanges", gpu);
    result.put("struck", Files.exists(marker));
    result.put("rows", row.getLong(0));
    result.put("different_rows", row.getLong(1));
    result.put("rows_right", right);
    result.put("consumers_done", done);
    result.put("consumers_run_again", again);
    result.put("seconds", seconds);
    result.put(
        "as_it_must",
        gpu == onGpu
            && Files.exists(marker)
            && done > 0
            && again == (asked.rollsBack() ? done : 0)
            && (right || !asked.keys));
    return result;
  }

  private static boolean isRight(final Row row) {
    return row.getLong(0) == ROWS
        && row.getLong(1) == ROWS
        && row.getLong(2) == 1
        && row.getLong(3) == ROWS * (ROWS - 1) / 2
        && row.getLong(5) == STRINGS
        && row.getLong(6) == ITEMS
        && row.getLong(7) == FIELDS;
  }

  /** Executors that were killed come back. */
  private void awaitExecutors() throws InterruptedException {
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(EXECUTORS_LIMIT_S);
    while (spark.sparkContext().statusTracker().getExecutorInfos().length <= EXECUTORS) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException("there are no two executors");
      }
      Thread.sleep(100);
    }
  }

  /**
   * @param same whether a row goes to the same reader each time
   */
  private Dataset<Row> query(final boolean same, final String folder, final String marker) {
    final UserDefinedFunction noise =
        udf(
                (UDF1<Long, Long>)
                    id -> {
                      if (id % (ROWS / MAPS) == 0) {
                        meet(folder);
                      }
                      return same ? id * 7919 % 1013 : ThreadLocalRandom.current().nextLong();
                    },
                DataTypes.LongType)
            .asNondeterministic();
    final UserDefinedFunction strike = Strike.in(STRIKER, marker);
    return spark
        .range(0, ROWS, 1, MAPS)
        .select(
            col("id"),
            noise.apply(col("id")).as("noise"),
            // What hashes have to be careful with: nulls, lengths, and what lies below a null.
            expr("CASE WHEN id % 3 = 0 THEN NULL ELSE concat('name ', id) END").as("s"),
            expr("CASE WHEN id % 5 = 0 THEN NULL ELSE sequence(0, id % 4) END").as("a"),
            expr("named_struct('k', id % 17, 'f', CASE WHEN id % 7 > 0 THEN concat('f', id) END)")
                .as("t"))
        .repartition(READERS, col("noise"))
        .select(strike.apply(col("id")).as("id"), col("noise"), col("s"), col("a"), col("t"))
        .groupBy("id")
        // What nobody asks for would be left out from the beginning.
        .agg(
            count("*").as("n"),
            max("noise").as("noise"),
            max("s").as("s"),
            max(expr("CASE WHEN a IS NULL THEN 0 ELSE size(a) END")).as("items"),
            max("t.f").as("f"))
        .agg(
            sum("n"),
            count("*"),
            max("n"),
            sum("id"),
            count("noise"),
            count("s"),
            sum("items"),
            count("f"));
  }

  /** The first row of a map task waits until both executors have one, so that both have outputs. */
  private static void meet(final String folder) throws IOException, InterruptedException {
    final Path mine = Path.of(folder, "executor-" + SparkEnv.get().executorId());
    if (!Files.exists(mine)) {
      Files.createFile(mine);
    }
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(EXECUTORS_LIMIT_S);
    while (executorsIn(folder) < EXECUTORS) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException("one executor has all map tasks");
      }
      Thread.sleep(10);
    }
  }

  private static long executorsIn(final String folder) throws IOException {
    try (Stream<Path> files = Files.list(Path.of(folder))) {
      return files.filter(file -> file.getFileName().toString().startsWith("executor-")).count();
    }
  }
}
