package io.zerohop.gpu;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.ScalaLists;
import io.zerohop.workload.ShuffleMeter;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.collection.Seq;

/**
 * Runs every query of {@link GpuQuestions} on the GPU, with adaptive execution and without, and
 * compares all rows with those of the CPU. Exits with 1 if any differs or took a path that it must
 * not.
 */
public final class GpuCheckApp {
  private static final String ON_GPU = "spark.rapids.sql.enabled";
  private static final long LISTENER_LIMIT_MS = 30_000;

  private final SparkSession spark;
  private final ShuffleMeter meter = new ShuffleMeter();
  private final List<Map<String, Object>> results = new ArrayList<>();
  private final OverflowMeter overflow = new OverflowMeter();
  private final String way;
  private long spilledBytes;
  private long fileBytes;
  private int bad;

  private GpuCheckApp(final SparkSession spark, final String way) {
    this.spark = spark;
    this.way = way;
    spark.sparkContext().addSparkListener(meter);
    spark.sparkContext().addSparkListener(overflow);
  }

  /**
   * @param args folder for data, file for the results as JSON, rows of the large tables, the way
   *     that blocks must take ({@code direct} in GPU memory, {@code host} for pools of GPU memory
   *     that overflow, {@code files} for pools of the host that do, too, {@code ucx} or {@code
   *     sent} between executors that take each other to be on other nodes, or {@code staged}), and
   *     the names of queries if not all are wanted
   */
  public static void main(final String[] args) throws Exception {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final GpuCheckApp app = new GpuCheckApp(spark, args[3]);
    spark.conf().set(ON_GPU, "false");
    GpuQuestions.prepare(spark, args[0], Long.parseLong(args[2]));
    final List<String> wanted = List.of(args).subList(4, args.length);
    for (final Map.Entry<String, String> question : GpuQuestions.all().entrySet()) {
      if (wanted.isEmpty() || wanted.contains(question.getKey())) {
        app.check(question.getKey(), question.getValue());
      }
    }
    app.checkOverflow();
    new ObjectMapper()
        .enable(SerializationFeature.INDENT_OUTPUT)
        .writeValue(Path.of(args[1]).toFile(), Map.of("rows", app.results));
    System.out.printf(Locale.ROOT, "checked %d, bad %d%n", app.results.size(), app.bad);
    spark.stop();
    System.exit(app.bad == 0 ? 0 : 1);
  }

  /** A pool that never overflowed shows nothing of what happens when it does. */
  private void checkOverflow() {
    final boolean went =
        switch (way) {
          case "host" -> spilledBytes > 0;
          case "files" -> fileBytes > 0;
          default -> true;
        };
    if (!went) {
      bad++;
      System.out.printf(Locale.ROOT, "expected blocks to overflow, to take the way %s%n", way);
    }
  }

  private void check(final String name, final String query) throws Exception {
    spark.conf().set(ON_GPU, "false");
    spark.conf().set("spark.sql.adaptive.enabled", "true");
    final List<String> expected = rows(query);
    spark.conf().set(ON_GPU, "true");
    for (final boolean adaptive : new boolean[] {true, false}) {
      spark.conf().set("spark.sql.adaptive.enabled", Boolean.toString(adaptive));
      final Map<String, Object> result = new LinkedHashMap<>();
      result.put("case", name);
      result.put("adaptive", adaptive);
      try {
        meter.reset();
        overflow.reset();
        final long start = System.nanoTime();
        final List<String> actual = rows(query);
        final double seconds = (System.nanoTime() - start) / 1e9;
        spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
        final Outcome outcome = meter.outcome(name, actual.size(), seconds);
        result.put("rows", actual.size());
        result.put("equal", actual.equals(expected));
        result.put("seconds", seconds);
        result.put("local_bytes", outcome.localBytes());
        result.put("peer_bytes", outcome.peerBytes());
        result.put("ucx_bytes", outcome.ucxBytes());
        result.put("sent_bytes", outcome.sentBytes());
        result.put("staged_bytes", outcome.stagedBytes());
        result.put("overflow_bytes", overflow.spilledBytes());
        result.put("file_bytes", overflow.fileBytes());
        spilledBytes += overflow.spilledBytes();
        fileBytes += overflow.fileBytes();
        final long direct = outcome.localBytes() + outcome.peerBytes();
        final boolean went =
            switch (way) {
              case "direct" -> outcome.stagedBytes() == 0 && overflow.spilledBytes() == 0;
              case "host" -> outcome.stagedBytes() == 0;
              case "staged" -> direct + outcome.ucxBytes() + outcome.sentBytes() == 0;
              case "ucx", "sent" -> outcome.peerBytes() + outcome.stagedBytes() == 0;
              default -> true;
            };
        result.put("went_its_way", went);
        bad += went ? 0 : 1;
        if (!actual.equals(expected)) {
          show(expected, actual);
        }
      } catch (final RuntimeException e) {
        result.put("equal", false);
        result.put("error", String.valueOf(e));
        e.printStackTrace();
      }
      bad += Boolean.TRUE.equals(result.get("equal")) ? 0 : 1;
      results.add(result);
      System.out.println(new ObjectMapper().writeValueAsString(result));
    }
  }

  private static void show(final List<String> expected, final List<String> actual) {
    System.out.printf(Locale.ROOT, "expected %d rows, got %d%n", expected.size(), actual.size());
    for (int i = 0, shown = 0; i < expected.size() && i < actual.size() && shown < 3; i++) {
      if (!expected.get(i).equals(actual.get(i))) {
        System.out.println("- " + expected.get(i) + "\n+ " + actual.get(i));
        shown++;
      }
    }
  }

  private List<String> rows(final String query) {
    return spark.sql(query).collectAsList().stream().map(GpuCheckApp::text).sorted().toList();
  }

  /** Exact but for doubles, which are given with ten digits. */
  private static String text(final Object value) {
    if (value instanceof Row row) {
      final List<String> fields = new ArrayList<>();
      for (int i = 0; i < row.length(); i++) {
        fields.add(text(row.get(i)));
      }
      return "{" + String.join("|", fields) + "}";
    }
    if (value instanceof Seq<?> seq) {
      final List<String> items = new ArrayList<>();
      for (final Object item : ScalaLists.of(seq)) {
        items.add(text(item));
      }
      return items.toString();
    }
    if (value instanceof Double number) {
      return String.format(Locale.ROOT, "%.9e", number);
    }
    return value instanceof BigDecimal decimal ? decimal.toPlainString() : String.valueOf(value);
  }
}
