package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import io.zerohop.spark.ui.Summary.Reason;
import io.zerohop.spark.ui.Summary.Verdict;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SummaryTest {
  private final ShuffleModel model = new ShuffleModel();

  private Summary summary() {
    return Summary.of(model.snapshot());
  }

  private void read(final String path, final String link, final long bytes) {
    final Flow flow = new Flow("2", path, link, 1, bytes, 10, 0, 0);
    model.add(new ShuffleReport("1", "", 1, List.of(flow), null, null, null, null));
  }

  private void fellBack(
      final int shuffle, final String reason, final long blocks, final Cause cause) {
    final Map<String, Cause> causes = cause == null ? null : Map.of(reason, cause);
    final ShuffleUse use =
        new ShuffleUse(shuffle, null, null, null, 0, Map.of(reason, blocks), causes);
    model.add(new ShuffleReport("1", "", 1, null, List.of(use), null, null, null));
  }

  private void advise(final Advice line) {
    model.add(ShuffleReportEvent.of("driver", List.of(line)).report());
  }

  @Test
  void nothingThatWasReadIsNoVerdict() {
    assertThat(summary().verdict()).isEqualTo(Verdict.NONE);
    assertThat(summary().headline()).isEqualTo("Nothing was read yet");
  }

  @Test
  void blocksInPlaceAndTasksThatDoNotWaitAreFast() {
    read("peer", "peer.nvlink", 3L << 30);
    read("local", "local", 1L << 30);
    model.ran(100_000, 200);
    assertThat(summary().verdict()).isEqualTo(Verdict.FAST);
    assertThat(summary().total()).isEqualTo(4L << 30);
    assertThat(summary().bytes()).containsEntry(Link.PEER_NVLINK, 3L << 30);
    assertThat(summary().details())
        .containsExactly(
            "Tasks waited for blocks 0.2 % of their time.",
            "None of 4.0 GiB took the fallback.",
            "The verdict depends on waits, fallbacks and findings of Zerohop's checks, not on rates.");
  }

  @Test
  void whatFellBackIsWorthALookAlthoughTheDoctorHasNothing() {
    read("peer", null, 32);
    read("staged", null, 68);
    fellBack(3, "it does not hold them in memory", 64, new Cause("ZH-6033", "", 68));
    advise(Reports.FINE);
    assertThat(summary().verdict()).isEqualTo(Verdict.LOOK);
    assertThat(summary().details())
        .containsExactly(
            "How long tasks waited for blocks is not known yet.",
            "68 % of 100 B took the fallback, for one reason.",
            "The verdict depends on waits, fallbacks and findings of Zerohop's checks, not on rates.");
  }

  @Test
  void whoWaitsLongIsSlow() {
    read("peer", null, 100);
    model.ran(1_000, 60);
    assertThat(summary().verdict()).isEqualTo(Verdict.LOOK);
    model.ran(1_000, 400);
    assertThat(summary().verdict()).isEqualTo(Verdict.SLOW);
    assertThat(summary().details()).contains("Tasks waited for blocks 23 % of their time.");
  }

  @Test
  void adviceIsWorthALookAndTheWorstComesFirst() {
    read("peer", null, 100);
    model.ran(1_000, 0);
    advise(Reports.MEND);
    advise(new Advice("manager", "fail", "", "another one", "", "set the key"));
    assertThat(summary().verdict()).isEqualTo(Verdict.LOOK);
    assertThat(summary().problems())
        .extracting(line -> line.advice().verdict())
        .containsExactly("fail", "warn");
    assertThat(summary().details()).contains("Zerohop's checks found 2 things to fix.");
  }

  @Test
  void whereZerohopIsNotUsedTheReasonIsSaid() {
    advise(new Advice("steps-aside", "fail", "", "the shuffle service is on", "", "turn it off"));
    assertThat(summary().verdict()).isEqualTo(Verdict.SLOW);
    assertThat(summary().headline()).startsWith("Zerohop is not used");
    assertThat(summary().details()).contains("the shuffle service is on");
  }

  @Test
  void reasonsAreAddedUpOverShufflesByCodeAndRemedy() {
    final String first = "it could not be reached (executor 7)";
    final String other = "it could not be reached (executor 8)";
    fellBack(1, first, 5, new Cause("ZH-3034", "", 100));
    fellBack(1, other, 9, new Cause("ZH-3034", "", 300));
    fellBack(2, other, 1, new Cause("ZH-3034", "", 50));
    fellBack(2, "UCX is off: no key [ZH-4022]", 1, new Cause("ZH-4060", "set a key", 9_000));
    fellBack(2, "UCX is off: no device", 1, new Cause("ZH-4060", "add a device", 8_000));
    fellBack(3, "of an older release [ZH-6033]", 77, null);
    assertThat(summary().reasons())
        .containsExactly(
            new Reason("ZH-4060", "set a key", "UCX is off: no key [ZH-4022]", 1, 1, 9_000, 1),
            new Reason("ZH-4060", "add a device", "UCX is off: no device", 1, 1, 8_000, 1),
            new Reason("ZH-3034", "", other, 2, 15, 450, 2),
            new Reason("", "", "of an older release [ZH-6033]", 1, 77, -1, 1));
  }

  @Test
  void sharesAreInWords() {
    assertThat(Summary.percent(0)).isEqualTo("0.0 %");
    assertThat(Summary.percent(0.0001)).isEqualTo("< 0.1 %");
    assertThat(Summary.percent(0.021)).isEqualTo("2.1 %");
    assertThat(Summary.percent(1)).isEqualTo("100 %");
  }

  @Test
  void sharesAddUpTo100() {
    final Map<String, Long> parts = new java.util.LinkedHashMap<>();
    parts.put("a", 1L);
    parts.put("b", 1L);
    parts.put("c", 1L);
    assertThat(Summary.shares(parts).values()).containsExactly("33.4 %", "33.3 %", "33.3 %");
    parts.put("a", 1_000_000L);
    assertThat(Summary.shares(parts).values()).containsExactly("100 %", "< 0.1 %", "< 0.1 %");
    assertThat(Summary.shares(Map.of("a", 0L)).values()).containsExactly("0.0 %");
  }
}
