package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.ui.UiSnapshot.AdviceLine;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Shuffle;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ShuffleModelTest {
  private static final ShuffleModel.Limits SMALL =
      new ShuffleModel.Limits(2, 3, 2, 10, 4, 1, 2, 5, 2);

  @Test
  void reportsAreAddedUp() {
    final ShuffleModel model = new ShuffleModel();
    model.add(Reports.full("1"));
    model.add(Reports.full("1"));
    model.add(Reports.full("10"));
    final UiSnapshot snapshot = model.snapshot();
    assertThat(snapshot.pairs())
        .contains(
            new Pair("1", "2", "peer", "peer", 40, 10_000_000, 20, 0, 0),
            new Pair("10", "3", "staged", "staged", 5, 300, 10, 0, 0));
    assertThat(snapshot.shuffles())
        .containsExactly(
            new Shuffle(
                4,
                List.of(7),
                List.of(8, 9),
                Map.of("local", 30L, "peer", 60L, "staged", 15L),
                Map.of("local", 3_000L, "peer", 15_000_000L, "staged", 900L),
                7_500_000,
                Map.of(Reports.REASON, 15L),
                Map.of(Reports.REASON, Reports.CAUSE.withBytes(930))));
    assertThat(snapshot.contacts()).hasSize(3);
    assertThat(snapshot.memory()).hasSize(2);
  }

  @Test
  void theShuffleThatWasUsedLeastRecentlyGoes() {
    final ShuffleModel model = new ShuffleModel(SMALL);
    for (final int shuffle : new int[] {0, 1, 2, 0, 3, 4}) {
      model.add(Reports.ofShuffle(shuffle));
    }
    assertThat(model.snapshot().shuffles()).extracting(Shuffle::shuffleId).containsExactly(0, 3, 4);
    assertThat(model.snapshot().evictedShuffles()).isEqualTo(2);
  }

  @Test
  void pairsBeyondTheLimitAreAddedToOneAndNoByteIsLost() {
    final ShuffleModel model = new ShuffleModel(SMALL);
    for (int i = 0; i < 50; i++) {
      model.add(Reports.full(String.valueOf(i)));
    }
    final List<Pair> pairs = model.snapshot().pairs();
    assertThat(pairs).hasSizeLessThanOrEqualTo(2 + 3);
    assertThat(pairs.stream().mapToLong(Pair::bytes).sum()).isEqualTo(50 * 5_001_300L);
    assertThat(model.snapshot().memory()).hasSize(2);
    assertThat(model.snapshot().contacts()).hasSize(4);
    assertThat(model.snapshot().evictedContacts()).isEqualTo(46);
  }

  @Test
  void pairsBeyondTheLimitAreAddedUpByNode() {
    final ShuffleModel model =
        new ShuffleModel(new ShuffleModel.Limits(10, 3, 2, 10, 4, 1, 2, 5, 2));
    for (int i = 0; i < 12; i++) {
      model.isOn("" + i, "host-" + i / 4);
    }
    for (int round = 0; round < 2; round++) { // In the first one only some machines are known.
      for (int i = 0; i < 12; i++) {
        final List<ShuffleReport.Flow> flows =
            IntStream.range(0, 12).mapToObj(j -> Reports.flow("" + j, "peer", 1, 100, 10)).toList();
        model.add(new ShuffleReport("" + i, "machine-" + i / 4, 1, flows, null, null, null, null));
      }
    }
    final UiSnapshot snapshot = model.snapshot();
    assertThat(snapshot.pairs()).hasSizeLessThanOrEqualTo(10 + 9);
    final Map<String, Long> byNode = new java.util.TreeMap<>();
    snapshot
        .pairs()
        .forEach(
            pair ->
                byNode.merge(
                    snapshot.nodes().get(pair.reader()) + " " + snapshot.nodes().get(pair.owner()),
                    pair.bytes(),
                    Long::sum));
    assertThat(byNode).hasSize(9);
    assertThat(byNode.values()).containsOnly(2L * 4 * 4 * 100);
  }

  @Test
  void pointsAreThinnedAndKeepTheFirstAndTheLast() {
    final ShuffleModel model = new ShuffleModel(SMALL);
    for (int i = 0; i <= 1_000; i++) {
      model.add(Reports.ofMemory("1", i, i));
    }
    final List<Point> points = model.snapshot().memory().get(0).points();
    assertThat(points).hasSizeLessThanOrEqualTo(10);
    assertThat(points.get(0).get(Figure.HOST_USED)).isZero();
    assertThat(points.get(points.size() - 1).get(Figure.HOST_USED)).isEqualTo(1_000);
  }

  @Test
  void seriesOfLiveExecutorsStayWhole() {
    final ShuffleModel model = new ShuffleModel(SMALL); // Two executors.
    for (int i = 0; i < 5; i++) {
      for (final String executor : List.of("1", "2", "3", "4")) {
        model.add(Reports.ofMemory(executor, i, i));
      }
    }
    assertThat(model.snapshot().memory()).extracting(one -> one.points().size()).containsOnly(5);
    assertThat(model.snapshot().executorsLeftOut()).isEqualTo(2);
    model.removed("1", Reports.BEGIN + 10);
    model.add(Reports.ofMemory("3", 20, 1));
    assertThat(model.snapshot().memory())
        .extracting(UiSnapshot.Series::executorId)
        .containsExactly("2", "3");
    assertThat(model.snapshot().executorsLeftOut()).isEqualTo(1);
  }

  @Test
  void whatALostExecutorHeldIsGoneAndWhatItSpilledIsNot() {
    final ShuffleModel model = new ShuffleModel();
    model.add(Reports.ofMemory("1", 0, 4096));
    model.removed("1", Reports.BEGIN + 10);
    model.removed("unknown", Reports.BEGIN + 10);
    final List<Point> points = model.snapshot().memory().get(0).points();
    assertThat(points).hasSize(2);
    assertThat(points.get(1).get(Figure.HOST_USED)).isZero();
    assertThat(points.get(1).get(Figure.SPILLED_TO_FILES)).isEqualTo(13);
  }

  @Test
  void sumsOverTimeCountEachExecutorWithWhatItSaidLast() {
    final ShuffleModel model = new ShuffleModel();
    model.add(Reports.ofMemory("1", 0, 100));
    model.add(Reports.ofMemory("2", 50, 10));
    model.add(Reports.ofMemory("1", 100, 200));
    final List<Point> sums = TimeLine.sums(model.snapshot().memory(), 3);
    assertThat(sums).extracting(one -> one.get(Figure.HOST_USED)).containsExactly(100L, 110L, 210L);
    assertThat(TimeLine.sums(List.of(), 3)).isEmpty();
  }

  @Test
  void aReportOfAnEmptyExecutorIsNothing() {
    final ShuffleModel model = new ShuffleModel();
    model.add(new ShuffleReport("1", "", 0, null, null, null, null, null));
    assertThat(model.snapshot())
        .isEqualTo(
            new UiSnapshot(null, null, null, null, null, null, null, null, null, null, 0, 0, 0, 0));
    assertThat(model.snapshot().isVoid()).isTrue();
  }

  @Test
  void theSameAdviceOfManyExecutorsIsOneLine() {
    final ShuffleModel model = new ShuffleModel();
    model.add(advised("0", Reports.MEND));
    IntStream.range(1, 20)
        .forEach(
            i -> {
              final Advice other =
                  new Advice("memlock", "warn", "ZH-2001", "it has " + i, "", "raise it");
              model.add(advised(String.valueOf(i), other));
            });
    model.add(advised("driver", Reports.FINE));
    final List<AdviceLine> lines = model.snapshot().advice();
    assertThat(lines).extracting(AdviceLine::advice).containsExactly(Reports.MEND, Reports.FINE);
    assertThat(lines.get(0).count()).isEqualTo(20);
    assertThat(lines.get(0).processes()).hasSizeLessThan(10).startsWith("0", "1");
    assertThat(model.snapshot().isVoid()).isFalse();
  }

  @Test
  void adviceWithoutEndIsBounded() {
    final ShuffleModel model = new ShuffleModel();
    for (int i = 0; i < 1_000; i++) {
      model.add(advised("1", new Advice("memory", "warn", "", i + " MiB are left", "", "")));
    }
    assertThat(model.snapshot().advice()).hasSizeLessThan(500);
  }

  @Test
  void executorsOfOneMachineAreOnOneNode() {
    final ShuffleModel model = new ShuffleModel();
    for (final String executor : List.of("1", "2", "3", "4")) {
      model.isOn(executor, executor.equals("3") ? "host-b" : "host-a");
    }
    report(model, "1", "aaaa");
    report(model, "2", "aaaa");
    report(model, "3", "bbbb");
    assertThat(model.snapshot().nodes())
        .containsExactlyInAnyOrderEntriesOf(
            Map.of("1", "host-a", "2", "host-a", "3", "host-b", "4", "host-a"));
  }

  @Test
  void podsOfOneMachineAreOnOneNodeAndMachinesOfOneNameOnTwo() {
    final ShuffleModel pods = new ShuffleModel();
    pods.isOn("1", "10.0.0.1");
    pods.isOn("2", "10.0.0.2");
    report(pods, "1", "aaaa");
    report(pods, "2", "aaaa");
    assertThat(pods.snapshot().nodes()).isEqualTo(Map.of("1", "aaaa", "2", "aaaa"));
    final ShuffleModel machines = new ShuffleModel();
    machines.isOn("1", "localhost");
    machines.isOn("2", "localhost");
    report(machines, "1", "aaaa");
    report(machines, "2", "bbbb");
    assertThat(machines.snapshot().nodes().get("1"))
        .isNotEqualTo(machines.snapshot().nodes().get("2"));
  }

  private static void report(final ShuffleModel model, final String executor, final String node) {
    model.add(new ShuffleReport(executor, node, 1, null, null, null, null, null));
  }

  @Test
  void bytesOverTimeAddUpHoweverLongItTakes() {
    final ShuffleModel model = new ShuffleModel(SMALL); // Ten steps.
    for (int i = 0; i < 1_000; i++) {
      model.add(
          new ShuffleReport(
              "1",
              "",
              Reports.BEGIN + 5_000L * i,
              List.of(new ShuffleReport.Flow("2", "peer", "peer.host", 1, 1_001, 10, 0, 0)),
              null,
              null,
              null,
              null));
    }
    final List<UiSnapshot.Rate> rates = model.snapshot().rates();
    assertThat(rates).hasSizeBetween(5, 10);
    assertThat(rates.stream().mapToLong(rate -> rate.bytes().getOrDefault("peer.host", 0L)).sum())
        .isEqualTo(1_001_000);
    final UiSnapshot.Rate last = rates.get(rates.size() - 1);
    assertThat(last.timeMillis() + last.millis()).isGreaterThan(Reports.BEGIN + 5_000L * 999);
    model.add(Reports.ofMemory("1", -1_000_000, 1)); // A clock that was set back.
  }

  @Test
  void whatAnExecutorReportsFirstIsNoPeak() {
    final ShuffleModel model = new ShuffleModel();
    model.add(
        new ShuffleReport(
            "1",
            "",
            Reports.BEGIN,
            List.of(Reports.flow("2", "peer", 1, 6_000, 10)),
            null,
            null,
            null,
            null));
    final List<UiSnapshot.Rate> rates = model.snapshot().rates();
    assertThat(rates).hasSize(5);
    assertThat(rates).extracting(rate -> rate.bytes().get("peer")).containsOnly(1_200L);
  }

  @Test
  void whereReportsMeetThereIsNoPeak() {
    final ShuffleModel model = new ShuffleModel();
    for (int i = 0; i < 4; i++) {
      for (int executor = 0; executor < 10; executor++) {
        final List<ShuffleReport.Flow> flows = List.of(Reports.flow("2", "peer", 1, 5_000, 10));
        model.add(
            new ShuffleReport(
                "" + executor,
                "",
                Reports.BEGIN + 5_000L * i + 70 * executor,
                flows,
                null,
                null,
                null,
                null));
      }
    }
    final List<UiSnapshot.Rate> rates = model.snapshot().rates();
    assertThat(rates.subList(1, rates.size() - 1))
        .allSatisfy(rate -> assertThat(rate.bytes().get("peer")).isBetween(9_900L, 10_100L));
  }

  @Test
  void theLeastThatExecutorsExpectOfALinkCounts() {
    final ShuffleModel model = new ShuffleModel();
    for (final long expected : new long[] {0, 270, 90, 180}) {
      model.add(
          new ShuffleReport(
              "1",
              "",
              1,
              null,
              null,
              null,
              List.of(new ShuffleReport.Contact("2", "how", "peer.nvlink", expected)),
              null));
    }
    assertThat(model.snapshot().expected()).isEqualTo(Map.of("peer.nvlink", 90L));
  }

  private static ShuffleReport advised(final String executorId, final Advice advice) {
    return ShuffleReportEvent.of(executorId, List.of(advice)).report();
  }
}
