package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import io.zerohop.spark.ui.ExecutorReports;
import io.zerohop.spark.ui.ShuffleReportEvent;
import io.zerohop.spark.watch.ExecutorWatch;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The tab and the reports to it are found by their class names, and none if nobody wants them. */
@Timeout(120)
class WatchesTest {
  private static final String INTERVAL = "spark.zerohop.ui.interval";

  private static final class Reports extends SparkListener {
    private final BlockingQueue<ShuffleReport> taken = new LinkedBlockingQueue<>();

    @Override
    public void onOtherEvent(final SparkListenerEvent event) {
      if (event instanceof ShuffleReportEvent own) {
        taken.add(own.report());
      }
    }
  }

  @Test
  void aShortJobIsReportedWhenItsLastTaskEnds() throws InterruptedException {
    final Reports reports = new Reports();
    final SparkConf conf =
        new SparkConf(false)
            .setMaster("local[2]")
            .setAppName("watched")
            .set("spark.ui.enabled", "false")
            .set("spark.shuffle.manager", ZerohopShuffleManager.class.getName())
            .set("spark.zerohop.pool.size", "16m")
            .set(INTERVAL, "1d");
    final List<ShuffleUse> uses = new ArrayList<>();
    try (JavaSparkContext spark = new JavaSparkContext(conf)) {
      spark.sc().addSparkListener(reports);
      assertThat(spark.parallelize(List.of(1, 2, 3, 4, 5, 6), 2).repartition(3).count())
          .isEqualTo(6);
      while (uses.stream().allMatch(use -> use.readers().isEmpty() || use.moved().isEmpty())) {
        uses.addAll(reports.taken.take().shuffles());
      }
    }
    assertThat(uses).extracting(ShuffleUse::shuffleId).containsOnly(0);
    assertThat(uses).flatExtracting(ShuffleUse::writers).containsOnly(0);
    assertThat(uses).flatExtracting(ShuffleUse::readers).containsOnly(1);
    assertThat(uses)
        .filteredOn(use -> use.moved().containsKey("local"))
        .extracting(use -> use.moved().get("local"))
        .extracting(Moved::bytes)
        .isNotEmpty();
  }

  @Test
  void withoutAnIntervalNothingIsReported() {
    final SparkConf conf = new SparkConf(false);
    assertThat(Watches.ofExecutor(conf)).isInstanceOf(ExecutorReports.class);
    assertThat(Watches.ofExecutor(conf.set(INTERVAL, "0"))).isSameAs(ExecutorWatch.NONE);
  }
}
