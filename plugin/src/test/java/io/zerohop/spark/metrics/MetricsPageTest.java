package io.zerohop.spark.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.metrics.ReadMetrics.PathAccumulators;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.executor.ShuffleWriteMetrics;
import org.apache.spark.executor.TaskMetrics;
import org.junit.jupiter.api.Test;

/** The table of docs/metrics.md. */
class MetricsPageTest {
  private static final Path PAGE = Path.of("../docs/metrics.md");
  private static final String BEGIN =
      "<!-- Generated from Metric; a test fails when this table is stale. -->\n";
  private static final String END = "<!-- End of what is generated. -->\n";

  /** A field of Spark's task metrics and what it has of a task that shuffles through Zerohop. */
  private record TaskField(Class<?> of, String field, String unit, String doc) {
    String name() {
      final String owner = of.getSimpleName();
      return of == TaskMetrics.class
          ? field
          : owner.substring(0, 1).toLowerCase(Locale.ROOT) + owner.substring(1) + "." + field;
    }
  }

  private static final List<TaskField> FIELDS =
      List.of(
          read("localBytesRead", "bytes", "Read by paths `local` and `peer`"),
          read("localBlocksFetched", "blocks", "Blocks of these bytes, as Spark counts blocks"),
          read("remoteBytesRead", "bytes", "Read by paths `ucx`, `sent` and `staged`"),
          read("remoteBlocksFetched", "blocks", "Blocks of these bytes, as Spark counts blocks"),
          read("fetchWaitTime", "ms", "Time that the task waited for blocks"),
          read("recordsRead", "rows", "Rows"),
          read("remoteBytesReadToDisk", "bytes", "Not filled: 0"),
          read("remoteReqsDuration", "ms", "Not filled: 0"),
          write("bytesWritten", "bytes", "Map output, wherever it lies"),
          write("recordsWritten", "rows", "Rows"),
          write("writeTime", "ns", "Time that packing and publishing the map output took"),
          new TaskField(
              TaskMetrics.class,
              "memoryBytesSpilled",
              "bytes",
              "Found no room in GPU memory, or in shared memory"),
          new TaskField(
              TaskMetrics.class, "diskBytesSpilled", "bytes", "Found no room in shared memory"));

  @Test
  void eachPathHasMetricsOfItsBytesAndBlocks() {
    for (final io.zerohop.shuffle.block.BlockPath path :
        io.zerohop.shuffle.block.BlockPath.values()) {
      assertThat(Metric.bytes(path).name()).startsWith(path.name());
      assertThat(Metric.blocks(path).name()).startsWith(path.name());
    }
  }

  /** Regenerate with {@code -Dzerohop.docs.write=true}. */
  @Test
  void thePageIsWhatTheMetricsSay() throws IOException {
    final String page = Files.readString(PAGE);
    final int begin = page.indexOf(BEGIN) + BEGIN.length();
    final String expected = page.substring(0, begin) + table() + page.substring(page.indexOf(END));
    if (Boolean.getBoolean("zerohop.docs.write")) {
      Files.writeString(PAGE, expected);
    }
    assertThat(Files.readString(PAGE))
        .as("docs/metrics.md is stale; run mvn -pl plugin -am test -Dzerohop.docs.write=true")
        .isEqualTo(expected);
  }

  @Test
  void theFieldsAreSparks() {
    for (final TaskField field : FIELDS) {
      assertThat(Arrays.stream(field.of.getMethods()).map(java.lang.reflect.Method::getName))
          .as(field.of.getName())
          .contains(field.field);
    }
  }

  @Test
  void eachMetricHasANameOfItsOwn() {
    assertThat(
            Arrays.stream(Metric.values())
                .flatMap(metric -> Stream.of(metric.key(), metric.formerly()))
                .filter(name -> !name.isEmpty()))
        .doesNotHaveDuplicates();
  }

  private static String table() {
    final StringBuilder table = new StringBuilder();
    table.append("| Name | Where | Type | Unit | What |\n| --- | --- | --- | --- | --- |\n");
    for (final Metric metric : Metric.values()) {
      row(
          table,
          metric.key(),
          "source, " + where(metric.owner()),
          switch (metric.type()) {
            case COUNTER -> "counter";
            case TOTAL -> "gauge that only rises";
            case GAUGE -> "gauge";
          },
          metric.unit(),
          metric.doc()
              + (metric.formerly().isEmpty()
                  ? ""
                  : "; also as `" + metric.formerly() + "`, its name in 0.2.0"));
    }
    for (final io.zerohop.shuffle.block.BlockPath path :
        io.zerohop.shuffle.block.BlockPath.values()) {
      row(
          table,
          PathAccumulators.name(path),
          "stage",
          "accumulator",
          "bytes",
          Metric.bytes(path).doc() + ", by tasks that succeeded");
    }
    for (final TaskField field : FIELDS) {
      row(table, field.name(), "task, Spark's field", "task metric", field.unit, field.doc);
    }
    return table.toString();
  }

  private static void row(
      final StringBuilder table,
      final String name,
      final String where,
      final String type,
      final String unit,
      final String doc) {
    table.append(
        String.format(Locale.ROOT, "| `%s` | %s | %s | %s | %s |\n", name, where, type, unit, doc));
  }

  private static String where(final Metric.Owner owner) {
    return switch (owner) {
      case ANY -> "every executor";
      case MEMORY -> "executors with shared memory";
      case KEEPER -> "executors with `spark.zerohop.keeper`";
      case GPU -> "executors with GPU memory";
    };
  }

  private static TaskField read(final String field, final String unit, final String doc) {
    return new TaskField(ShuffleReadMetrics.class, field, unit, doc);
  }

  private static TaskField write(final String field, final String unit, final String doc) {
    return new TaskField(ShuffleWriteMetrics.class, field, unit, doc);
  }
}
