package io.zerohop.spark.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.ReportCounters.ReaderCounts;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Contact;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReportCountersTest {
  private final ReportCounters counters = new ReportCounters();

  @Test
  void aReportHasWhatWasCountedAndTheNextOneNothing() {
    counters.writes(3, 1);
    counters.reads(3, 2);
    final ReaderCounts reader = new ReaderCounts(counters, 3);
    reader.fetched("7", Link.PEER_NVLINK, 2, 100);
    reader.fetched("7", Link.PEER_NVLINK, 1, 50);
    reader.fetched("8", Link.STAGED, 4, 10);
    reader.waited(5_000);
    reader.end();
    final Message reason =
        new Message("ZH-6033", "it is in files", "executor 7", "", "raise a key");
    counters.fellBack(3, 4, 7, reason);
    counters.fellBack(3, 1, 2, reason.at("executor 8"));
    counters.met("7", "read in place", Link.PEER_HOST, 2);
    final Advice advice = new Advice("files", "warn", "", "few", "", "raise them");
    counters.advise(advice);

    final ShuffleReport report = counters.drain("1", "n", null);
    assertThat(report.executorId()).isEqualTo("1");
    assertThat(report.shuffles())
        .containsExactly(
            new ShuffleUse(
                3,
                List.of(1),
                List.of(2),
                Map.of("peer", new Moved(3, 150), "staged", new Moved(4, 10)),
                5_000,
                Map.of("it is in files", 5L),
                Map.of("it is in files", new Cause("ZH-6033", "raise a key", 9))));
    assertThat(report.flows()).extracting(Flow::owner).containsExactlyInAnyOrder("7", "8");
    final Flow peer =
        report.flows().stream().filter(flow -> flow.owner().equals("7")).findFirst().get();
    assertThat(report.node()).isEqualTo("n");
    assertThat(peer.path()).isEqualTo("peer");
    assertThat(peer.link()).isEqualTo("peer.nvlink");
    assertThat(peer.bytes()).isEqualTo(150);
    assertThat(peer.blocks()).isEqualTo(3);
    assertThat(peer.busyMillis()).isGreaterThanOrEqualTo(ReportCounters.SLOT_MILLIS);
    assertThat(report.contacts())
        .containsExactly(new Contact("7", "read in place", "peer.host", 2));
    assertThat(report.advice()).containsExactly(advice);
    assertThat(counters.isEmpty()).isTrue();
    assertThat(counters.drain("1", "n", null).flows()).isEmpty();
  }

  @Test
  void aReportIsBoundedAndOwnersAndReasonsAddUp() {
    final int owners = ReportCounters.MAX_FLOWS + 100;
    for (int i = 0; i < owners; i++) {
      final ReaderCounts reader = new ReaderCounts(counters, i);
      reader.fetched(String.valueOf(i), Link.LOCAL, 1, 10);
      reader.end();
      counters.fellBack(0, 1, 7, Message.of("reason " + i));
      counters.met(String.valueOf(i), "how", Link.UCX, 0);
      counters.reads(0, i);
    }
    final ShuffleReport report = counters.drain("1", "n", null);
    assertThat(report.flows()).hasSize(ReportCounters.MAX_FLOWS + 1);
    assertThat(report.flows().stream().mapToLong(Flow::bytes).sum()).isEqualTo(10L * owners);
    assertThat(report.shuffles()).hasSize(ReportCounters.MAX_SHUFFLES);
    assertThat(report.contacts()).hasSize(ReportCounters.MAX_CONTACTS);
    final ShuffleUse first =
        report.shuffles().stream().filter(use -> use.shuffleId() == 0).findFirst().get();
    assertThat(first.fallbacks()).hasSize(ReportCounters.MAX_REASONS + 1);
    assertThat(first.fallbacks().values().stream().mapToLong(n -> n).sum()).isEqualTo(owners);
    assertThat(first.causes().keySet()).isEqualTo(first.fallbacks().keySet());
    assertThat(first.causes().values().stream().mapToLong(Cause::bytes).sum())
        .isEqualTo(7L * owners);
    assertThat(first.readers()).hasSize(ReportCounters.MAX_STAGES);
  }

  @Test
  void longTextIsCut() {
    counters.fellBack(1, 1, 7, Message.of("x".repeat(10_000)));
    final String reason =
        counters.drain("1", "n", null).shuffles().get(0).fallbacks().keySet().iterator().next();
    assertThat(reason).hasSizeLessThan(ReportCounters.MAX_CHARS + 10);
  }
}
