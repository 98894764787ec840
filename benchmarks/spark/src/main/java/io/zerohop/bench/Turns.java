package io.zerohop.bench;

import io.zerohop.cluster.ClusterException;
import io.zerohop.workload.Contender;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.ResultFile;
import io.zerohop.workload.Testbed;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * Lets contenders run each workload in turns, so that what changes on the machine meanwhile hits
 * all of them, and insists that all return the same rows. For one thread.
 */
final class Turns {
  private final Testbed testbed;
  private final List<Contender> contenders;

  Turns(final Testbed testbed, final List<Contender> contenders) {
    this.testbed = testbed;
    this.contenders = contenders;
  }

  /** Starts every contender's cluster. */
  void start() throws IOException {
    for (int lane = 0; lane < contenders.size(); lane++) {
      testbed.start(lane, contenders.get(lane));
    }
    testbed.awaitReady();
  }

  /**
   * Runs a workload once through each contender, keeps a row for each and prints it.
   *
   * @param iteration who begins changes with it
   * @param shown what the workload is called in print
   * @param about what the rows say of the workload
   */
  void time(
      final String workload,
      final int iteration,
      final String shown,
      final Map<String, Object> about,
      final Measurement measurement)
      throws IOException {
    round(
        workload,
        iteration,
        (lane, outcome) -> {
          final Map<String, Object> row = row(lane, outcome, iteration);
          row.putAll(about);
          measurement.add(row);
          System.out.printf(
              Locale.ROOT,
              "%d %-12s %-18s %7.2f s %8d ms in shuffle stages%n",
              iteration,
              shown,
              row.get("case"),
              outcome.seconds(),
              outcome.stageMs());
        });
  }

  /** Hands each lane's outcome on, in the order they ran. */
  private void round(
      final String workload, final int iteration, final BiConsumer<Integer, Outcome> each)
      throws IOException {
    for (int i = 0; i < contenders.size(); i++) {
      final int lane = (i + iteration) % contenders.size();
      final Outcome outcome = testbed.run(lane, workload);
      if (!outcome.succeeded()) {
        throw new ClusterException(
            contenders.get(lane).label() + " failed at " + workload + ": " + outcome.error());
      }
      each.accept(lane, outcome);
    }
    for (int lane = 1; lane < contenders.size(); lane++) {
      requireSameRows(workload, lane);
    }
  }

  /** What a measurement says about one run. */
  private Map<String, Object> row(final int lane, final Outcome outcome, final int iteration) {
    final Map<String, Object> row = new LinkedHashMap<>();
    row.put("case", contenders.get(lane).label());
    row.put("query", outcome.workload());
    row.put("iteration", iteration);
    row.put("seconds", outcome.seconds());
    row.put("stage_ms", outcome.stageMs());
    row.put("write_ms", outcome.writeNanos() / 1e6);
    row.put("fetch_wait_ms", outcome.fetchWaitMs());
    row.put("shuffle_bytes", outcome.shuffleBytes());
    row.put("local_bytes", outcome.localBytes());
    row.put("peer_bytes", outcome.peerBytes());
    row.put("ucx_bytes", outcome.ucxBytes());
    row.put("sent_bytes", outcome.sentBytes());
    row.put("staged_bytes", outcome.stagedBytes());
    if (outcome.rpc().get("requests") > 0) {
      row.put("rpc", outcome.rpc());
    }
    return row;
  }

  private void requireSameRows(final String workload, final int lane) throws IOException {
    final List<String> differences =
        ResultFile.differences(
            contenders.get(0).label(), testbed.result(0, workload),
            contenders.get(lane).label(), testbed.result(lane, workload));
    if (!differences.isEmpty()) {
      throw new ClusterException(
          workload
              + " returned other rows: "
              + differences.size()
              + " differences, "
              + differences.get(0));
    }
  }
}
