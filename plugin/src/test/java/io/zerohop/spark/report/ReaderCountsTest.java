package io.zerohop.spark.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Path;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Moved;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReaderCountsTest {
  private final ReportCounters executor = new ReportCounters(true);
  private final ReaderCounts reader = new ReaderCounts(executor, 3);

  @Test
  void allIsToldAtTheEndAndOnce() {
    for (int i = 0; i < 1_000; i++) {
      reader.fetched("7", Path.PEER, 1, 10);
      reader.fetched("8", Path.STAGED, 2, 5);
    }
    reader.waited(40);
    reader.waited(2);
    reader.fellBack(4, Message.of("it is on another node"));
    reader.end();
    reader.end();
    final ShuffleReport report = executor.drain("1", null);
    assertThat(report.shuffles()).hasSize(1);
    assertThat(report.shuffles().get(0).moved())
        .isEqualTo(Map.of("peer", new Moved(1_000, 10_000), "staged", new Moved(2_000, 5_000)));
    assertThat(report.shuffles().get(0).waitNanos()).isEqualTo(42);
    assertThat(report.shuffles().get(0).fallbacks()).containsValue(4L);
    assertThat(report.flows()).extracting(Flow::bytes).containsExactlyInAnyOrder(10_000L, 5_000L);
  }

  @Test
  void eachSlotInWhichSomethingCameIsBusy() {
    final ReaderCounts other = new ReaderCounts(executor, 3);
    for (int slot = 1; slot <= 20; slot++) {
      reader.fetched("7", Path.PEER, 1, 10, slot);
      reader.fetched("7", Path.PEER, 1, 10, slot);
      other.fetched("7", Path.PEER, 1, 10, slot);
    }
    reader.end();
    other.end();
    final Flow flow = executor.drain("1", null).flows().get(0);
    assertThat(flow.bytes()).isEqualTo(600);
    // By two readers in turns a slot may count twice, and never not at all.
    assertThat(flow.busyMillis()).isBetween(200L, 220L);
  }

  @Test
  void whatIsCountedBehindTheEndIsToldAtOnce() {
    reader.end();
    reader.fetched("7", Path.PEER, 1, 10);
    reader.waited(5);
    final ShuffleReport report = executor.drain("1", null);
    assertThat(report.flows().get(0).bytes()).isEqualTo(10);
    assertThat(report.shuffles().get(0).waitNanos()).isEqualTo(5);
  }

  @Test
  void whatNobodyTakesIsNotKept() {
    final ReportCounters off = new ReportCounters(false);
    final ReaderCounts unused = new ReaderCounts(off, 3);
    unused.fetched("7", Path.PEER, 1, 10);
    unused.waited(1);
    unused.end();
    assertThat(off.isEmpty()).isTrue();
  }
}
