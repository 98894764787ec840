package io.zerohop.spark.rapids.api;

import io.zerohop.spark.log.SparkCode;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * Metrics of a RAPIDS exchange that its shuffle manager fills, as RAPIDS' own managers do:
 * uncompressed bytes written and read, and the time of reads. Adaptive execution takes the size of
 * a stage from the first of these ({@code GpuShuffleExchangeExec.runtimeStatistics}): if it stays
 * 0, every shuffled join becomes a broadcast.
 *
 * <p>RAPIDS has more of them, for its serializers and threads. They have no meaning here and stay
 * empty. For one task's thread; Spark adds the tasks' values up.
 */
public final class ExchangeMetrics {
  /** Bytes of the packed tables that were written, without headers. */
  static final String WRITTEN = "dataSize";

  /** The same for what was read. */
  static final String READ = "dataReadSize";

  /** Nanoseconds until a reader had the blocks it asked for. */
  static final String READ_TIME = "rapidsShuffleReadTime";

  private static final Logger LOG = LoggerFactory.getLogger(ExchangeMetrics.class);
  private static final AtomicBoolean SAID = new AtomicBoolean();

  private final @Nullable SQLMetric written;
  private final @Nullable SQLMetric read;
  private final @Nullable SQLMetric readTime;

  private ExchangeMetrics(final Map<String, SQLMetric> metrics) {
    written = metric(metrics, WRITTEN);
    read = metric(metrics, READ);
    readTime = metric(metrics, READ_TIME);
  }

  /** Those of an exchange, by their names; the others are never filled. */
  public static ExchangeMetrics of(final Map<String, SQLMetric> metrics) {
    return new ExchangeMetrics(metrics);
  }

  /** Those of the exchange that a GPU shuffle belongs to. */
  public static ExchangeMetrics of(final ShuffleDependency<?, ?, ?> dependency) {
    return of(RapidsClasses.get().exchangeMetrics(dependency));
  }

  private static @Nullable SQLMetric metric(
      final Map<String, SQLMetric> metrics, final String name) {
    final Option<SQLMetric> found = metrics.get(name);
    return found.isDefined() ? found.get() : null;
  }

  /** What plans depend on and is not there. RAPIDS leaves others out if the user wants few. */
  List<String> missing() {
    return written == null ? List.of(WRITTEN) : List.of();
  }

  /** Says once in an application what is missing; for the driver, which makes the plans. */
  public void warnOfMissing() {
    if (!missing().isEmpty() && !SAID.getAndSet(true)) {
      SparkCode.EXCHANGE_METRICS_MISSING
          .says(
              "RAPIDS' exchanges lack a metric, so adaptive execution treats every shuffle as empty"
                  + " and may broadcast large tables")
          .at("metric " + missing())
          .remedy(
              "set spark.sql.adaptive.autoBroadcastJoinThreshold=-1, or use a version of"
                  + " docs/compatibility.md")
          .warn(LOG);
    }
  }

  /** Tables of so many bytes are in the map output. */
  public void written(final long bytes) {
    add(written, bytes);
  }

  /** Tables of so many bytes were read. */
  public void read(final long bytes) {
    add(read, bytes);
  }

  /** It took so long to have blocks that were asked for. */
  public void readTime(final long nanos) {
    add(readTime, nanos);
  }

  private static void add(final @Nullable SQLMetric metric, final long value) {
    if (metric != null && value > 0) {
      metric.add(value);
    }
  }
}
