package io.zerohop.spark.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.ReportCounters.ReaderCounts;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Moved;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReaderCountsTest {
  private final ReportCounters executor = new ReportCounters();
  private final ReaderCounts reader = new ReaderCounts(executor, 3);

  @Test
  void allIsToldAtTheEndAndOnce() {
    for (int i = 0; i < 1_000; i++) {
      reader.fetched("7", Link.PEER, 1, 10);
      reader.fetched("8", Link.STAGED, 2, 5);
    }
    reader.waited(40);
    reader.waited(2);
    final List<Block> blocks = List.of(new Block(3, 0, 0, 1, 3), new Block(3, 1, 1, 1, 4));
    final BlockSource owner = new BlockSource("8", null, "there", blocks);
    reader.fetched(owner, Link.STAGED, blocks, 7);
    reader.fellBack(owner, blocks, Message.of("it is on another node"));
    reader.end();
    reader.end();
    final ShuffleReport report = executor.drain("1", "n", null);
    assertThat(report.shuffles()).hasSize(1);
    assertThat(report.shuffles().get(0).moved())
        .isEqualTo(Map.of("peer", new Moved(1_000, 10_000), "staged", new Moved(2_002, 5_007)));
    assertThat(report.shuffles().get(0).waitNanos()).isEqualTo(42);
    assertThat(report.shuffles().get(0).fallbacks()).containsValue(2L);
    assertThat(report.shuffles().get(0).causes().values()).extracting(Cause::bytes).contains(7L);
    assertThat(report.flows()).extracting(Flow::bytes).containsExactlyInAnyOrder(10_000L, 5_007L);
  }

  @Test
  void eachSlotInWhichSomethingCameIsBusy() {
    final ReaderCounts other = new ReaderCounts(executor, 3);
    for (int slot = 1; slot <= 20; slot++) {
      reader.fetched("7", Link.PEER, 1, 10, slot);
      reader.fetched("7", Link.PEER, 1, 10, slot);
      other.fetched("7", Link.PEER, 1, 10, slot);
    }
    reader.end();
    other.end();
    final Flow flow = executor.drain("1", "n", null).flows().get(0);
    assertThat(flow.bytes()).isEqualTo(600);
    assertThat(flow.busyMillis()).isEqualTo(200);
    assertThat(flow.fullMillis()).as("all but the first and the last").isEqualTo(180);
    assertThat(flow.fullBytes()).isEqualTo(18 * 30);
  }

  @Test
  void slotsBesideAPauseAreNotFull() {
    final ReaderCounts late = new ReaderCounts(executor, 3);
    late.fetched("7", Link.PEER, 1, 1_000, 11); // Told of at its end only.
    for (final int slot : new int[] {10, 12, 13, 15, 17}) {
      reader.fetched("7", Link.PEER, 1, 10, slot);
    }
    reader.end();
    late.end();
    final Flow flow = executor.drain("1", "n", null).flows().get(0);
    assertThat(flow.fullBytes()).as("slots 11 and 12").isEqualTo(1_010);
    assertThat(flow.fullMillis()).isEqualTo(20);
    assertThat(flow.busyMillis()).isEqualTo(60);
  }

  @Test
  void slotsFarBehindTheFirstHaveBytesAndFillNone() {
    for (final long slot : new long[] {1, 1_000, 1_001, 1_002, Long.MAX_VALUE / 2}) {
      reader.fetched("7", Link.PEER, 1, 10, slot);
    }
    reader.end();
    final Flow flow = executor.drain("1", "n", null).flows().get(0);
    assertThat(flow.bytes()).isEqualTo(50);
    assertThat(flow.busyMillis()).isEqualTo(50);
    assertThat(flow.fullMillis()).isZero();
  }

  @Test
  void whatIsCountedBehindTheEndIsToldAtOnce() {
    reader.end();
    reader.fetched("7", Link.PEER, 1, 10);
    reader.waited(5);
    final ShuffleReport report = executor.drain("1", "n", null);
    assertThat(report.flows().get(0).bytes()).isEqualTo(10);
    assertThat(report.shuffles().get(0).waitNanos()).isEqualTo(5);
  }
}
