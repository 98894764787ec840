package io.zerohop.bench;

import io.zerohop.cluster.ClusterException;
import io.zerohop.cluster.Node;
import io.zerohop.cluster.ThreadTime;
import io.zerohop.cluster.TwoNodes;
import io.zerohop.workload.Contender;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** What the threads of UCX need of the processor while executors on two nodes do nothing. */
final class IdleUcx {
  private static final String THREAD = "zerohop-ucx";

  private final TwoNodes nodes;
  private final int seconds;

  IdleUcx(final TwoNodes nodes, final int seconds) {
    this.nodes = nodes;
    this.seconds = seconds;
  }

  /** Watches them, and returns a row of a measurement for each executor. */
  List<Map<String, Object>> watch() throws InterruptedException {
    final Map<Long, Double> before = used();
    if (before.isEmpty()) {
      throw new ClusterException("no executor has a thread " + THREAD);
    }
    final long start = System.nanoTime();
    TimeUnit.SECONDS.sleep(seconds);
    final Map<Long, Double> after = used();
    final double passed = (System.nanoTime() - start) / 1e9;
    if (!after.keySet().equals(before.keySet())) {
      throw new ClusterException("executors have come or gone while nothing was done");
    }
    final List<Map<String, Object>> rows = new ArrayList<>();
    before.forEach((pid, first) -> rows.add(row(first, after.get(pid) - first, passed)));
    return rows;
  }

  private static Map<String, Object> row(
      final double before, final double used, final double passed) {
    System.out.printf(Locale.ROOT, "idle: %s used %.2f s in %.0f s%n", THREAD, used, passed);
    final Map<String, Object> row = new LinkedHashMap<>();
    row.put("case", Contender.ZEROHOP.label());
    row.put("thread", THREAD);
    row.put("cpu_seconds_before", before);
    row.put("idle_seconds", passed);
    row.put("cpu_seconds", used);
    row.put("share_of_core", used / passed);
    return row;
  }

  /** The seconds so far, by process. */
  private Map<Long, Double> used() {
    final Map<Long, Double> used = new LinkedHashMap<>();
    for (final Node node : List.of(nodes.first(), nodes.second())) {
      for (final long pid : node.processes()) {
        ThreadTime.seconds(pid, THREAD).ifPresent(own -> used.put(pid, own));
      }
    }
    return used;
  }
}
