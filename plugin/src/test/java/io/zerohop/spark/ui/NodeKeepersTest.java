package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.ui.UiSnapshot.NodeKeeper;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.util.JsonProtocol$;
import org.junit.jupiter.api.Test;

class NodeKeepersTest {
  private final ShuffleModel model = new ShuffleModel();

  private List<NodeKeeper> keepers() {
    return model.snapshot().keepers();
  }

  private String state() {
    final Html page = new Html();
    NodeKeepers.render(page, keepers(), PageQuery.ALL);
    return Stream.of(page.toString().split("<tr>"))
        .filter(row -> row.startsWith("<td"))
        .map(row -> row.replaceAll("</td><td[^>]*>", "|").replaceAll("<[^>]*>", ""))
        .collect(Collectors.joining(" "));
  }

  @Test
  void theNumbersAreInTheTableAndNotAddedUp() {
    model.isOn("1", "host-a");
    model.isOn("2", "host-a");
    model.add(Reports.ofKeeper("1", "n", 10, 0));
    model.add(Reports.ofKeeper("2", "n", 20, 0));
    final String since = Html.clock(Reports.BEGIN);
    final String last = Html.clock(Reports.BEGIN + 20);
    assertThat(state())
        .isEqualTo(
            "host-a|connected|"
                + since
                + "|1.2 &lt;&amp;&gt;|0|5.0 MiB|64.0 MiB|4.0 MiB|6.0 MiB|70.0 MiB|41|52|7|3|9.0 MiB|1.0 KiB|"
                + last);
    assertThat(model.snapshot().refused()).isZero();
  }

  @Test
  void whetherItIsConnectedIsSaidOfExecutorsThatAreThere() {
    model.add(Reports.ofKeeper("1", "n", 0, -1));
    assertThat(state()).contains("|not connected||");
    model.add(Reports.ofKeeper("1", "n", 1, 0));
    model.add(Reports.ofKeeper("2", "n", 2, -1));
    assertThat(state()).contains("|connected to 1 of 2 executors|").contains("|41|52|");
    model.removed("2", Reports.BEGIN);
    assertThat(state()).contains("|connected|");
    model.removed("1", Reports.BEGIN);
    assertThat(state()).contains("|no executor to ask|").contains("|41|52|");
  }

  /** The names are of whoever wrote the log. */
  @Test
  void executorsOfAllNodesTogetherAreLimited() {
    for (int i = 0; i < 12_000; i++) {
      model.add(Reports.ofKeeper("e" + i, "n" + i % 20, 1, 0));
    }
    assertThat(keepers().stream().mapToInt(NodeKeeper::executors).sum()).isEqualTo(10_000);
    model.removed("e0", Reports.BEGIN);
    model.add(Reports.ofKeeper("later", "n0", 1, 0));
    assertThat(keepers().stream().mapToInt(NodeKeeper::executors).sum()).isEqualTo(10_000);
  }

  @Test
  void aKeeperThatFollowsAnotherOneIsARestartAndLateReportsAreNone() {
    model.add(Reports.ofKeeper("1", "n", 0, 0));
    model.add(Reports.ofKeeper("2", "n", 1, 0));
    model.add(Reports.ofKeeper("1", "n", 2, -1));
    model.add(Reports.ofKeeper("1", "n", 3, 50));
    model.add(Reports.ofKeeper("2", "n", 4, 0)); // Has not seen the other one yet.
    model.add(Reports.ofKeeper("2", "n", 5, 50));
    assertThat(keepers()).hasSize(1);
    assertThat(keepers().get(0).restarts()).isEqualTo(1);
    assertThat(keepers().get(0).keeper().started()).isEqualTo(Reports.BEGIN + 50);
  }

  /** The start of a keeper is a time of the wall clock, which may be set back between two. */
  @Test
  void aKeeperThatSeemsToHaveStartedBeforeAnotherFollowsIt() {
    model.add(Reports.ofKeeper("1", "n", 0, 50));
    model.add(Reports.ofKeeper("2", "n", 1, 50));
    model.add(Reports.ofKeeper("1", "n", 2, 10));
    model.add(Reports.ofKeeper("2", "n", 3, 50)); // Has not seen the other one yet.
    assertThat(keepers().get(0).restarts()).isEqualTo(1);
    assertThat(keepers().get(0).keeper().started()).isEqualTo(Reports.BEGIN + 10);
    model.add(Reports.ofKeeper("2", "n", 4, 10));
    assertThat(keepers().get(0).restarts()).isEqualTo(1);
    assertThat(keepers().get(0).keeper().started()).isEqualTo(Reports.BEGIN + 10);
  }

  /** An executor that reports late for the first time says nothing to the others for long. */
  @Test
  void whatNoExecutorIsConnectedToAnyMoreGoes() {
    model.add(Reports.ofKeeper("1", "n", 0, 50));
    model.add(Reports.ofKeeper("2", "n", 1, 10));
    model.removed("2", Reports.BEGIN + 2);
    model.add(Reports.ofKeeper("1", "n", 3, 50));
    assertThat(keepers().get(0).keeper().started()).isEqualTo(Reports.BEGIN + 50);
  }

  @Test
  void eachNodeHasItsOwn() {
    model.isOn("1", "host-a");
    model.isOn("2", "host-b");
    model.add(Reports.ofKeeper("1", "n", 0, 0));
    model.add(Reports.ofKeeper("2", "m", 0, 10));
    assertThat(keepers()).extracting(NodeKeeper::node).containsExactly("host-a", "host-b");
    assertThat(keepers()).extracting(NodeKeeper::restarts).containsExactly(0, 0);
  }

  @Test
  void anEventLogHasItAndWithoutKeepersThereIsNoTable() {
    model.add(Reports.full("1"));
    assertThat(keepers()).isEmpty();
    assertThat(PageContent.of(model.snapshot(), PageQuery.ALL)).doesNotContain("zerohop-keepers");
    final ShuffleReport report = Reports.ofKeeper("1", "n", 10, 0);
    final SparkListenerEvent event = new ShuffleReportEvent(report);
    final SparkListenerEvent read =
        JsonProtocol$.MODULE$.sparkEventFromJson(
            JsonProtocol$.MODULE$.sparkEventToJsonString(event));
    model.add(((ShuffleReportEvent) read).report());
    assertThat(keepers().get(0).keeper()).isEqualTo(report.memory().keeper());
    assertThat(PageContent.of(model.snapshot(), PageQuery.ALL)).contains("zerohop-keepers");
  }
}
