package io.zerohop.spark.rapids.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.junit.jupiter.api.Test;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

class ExchangeMetricsTest {
  private final SQLMetric written = new SQLMetric("size", 0);
  private final SQLMetric read = new SQLMetric("size", 0);
  private final SQLMetric readTime = new SQLMetric("nsTiming", 0);

  private java.util.Map<String, SQLMetric> all() {
    return new HashMap<>(
        java.util.Map.of(
            "dataSize", written, "dataReadSize", read, "rapidsShuffleReadTime", readTime));
  }

  private static ExchangeMetrics of(final java.util.Map<String, SQLMetric> metrics) {
    return ExchangeMetrics.of(Map.from(CollectionConverters.asScala(metrics)));
  }

  @Test
  void tasksAddToWhatTheExchangeHas() {
    final ExchangeMetrics metrics = of(all());
    metrics.written(1000);
    metrics.written(24);
    metrics.read(512);
    metrics.readTime(70);
    assertThat(metrics.missing()).isEmpty();
    assertThat(written.value()).isEqualTo(1024L);
    assertThat(read.value()).isEqualTo(512L);
    assertThat(readTime.value()).isEqualTo(70L);
  }

  @Test
  void whatNothingIsAddedToStaysAsSparkLeavesOutOfItsPages() {
    of(all()).written(0);
    assertThat(written.isZero()).isTrue();
  }

  @Test
  void whatPlansDependOnIsMissedAndNothingElse() {
    final java.util.Map<String, SQLMetric> few = all();
    few.remove("dataReadSize");
    assertThat(of(few).missing()).isEmpty();
    final ExchangeMetrics without = of(java.util.Map.of());
    assertThat(without.missing()).containsExactly("dataSize");
    without.written(1);
    without.read(1);
    without.readTime(1);
  }
}
