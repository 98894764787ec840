package io.zerohop.spark.ui;

import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Keeper;
import io.zerohop.spark.ui.UiSnapshot.NodeKeeper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToLongFunction;

/**
 * The keepers of nodes, as executors report them, and their table. All executors of a node report
 * the same keeper, so its numbers are not added up: the last report counts, but for those of
 * executors that have not seen a new keeper yet. Bounded. Not thread safe.
 */
final class NodeKeepers {
  private static final int MAX_NODES = 1_000;

  /** Of all nodes together: a hostile log names as many as it likes. */
  private static final int MAX_EXECUTORS = 10_000;

  /** Of one node. */
  private static final int MAX_KEEPERS = 100;

  private static final PagedTable<NodeKeeper> TABLE = table();

  private final Map<String, Known> nodes = new LinkedHashMap<>();
  private int executorCount;

  private static final class Known {
    /** Start of the keeper that each executor is connected to, or 0; of those that are there. */
    private final Map<String, Long> executors = new HashMap<>();

    /** Starts of all its keepers so far. A clock may go back, so they have no order. */
    private final Set<Long> starts = new HashSet<>();

    /** By which the node is named. */
    private final String first;

    private Keeper keeper;
    private long timeMillis;

    private Known(final String first, final Keeper keeper) {
      this.first = first;
      this.keeper = keeper;
    }

    /** Returns whether the executor is a new one. */
    boolean add(
        final String executorId, final long time, final Keeper said, final boolean hasRoom) {
      final long before = executors.getOrDefault(executorId, 0L);
      final boolean isNew = hasRoom && !executors.containsKey(executorId);
      if (isNew || executors.containsKey(executorId)) {
        executors.put(executorId, said.started());
      }
      // An executor may report the keeper before, or none yet, a little later than the others.
      final boolean isLate =
          said.started() == before
              && said.started() != keeper.started()
              && executors.containsValue(keeper.started());
      if (said.connected() && !isLate) {
        keeper = said;
        if (starts.size() < MAX_KEEPERS) {
          starts.add(said.started());
        }
      }
      timeMillis = Math.max(timeMillis, time);
      return isNew;
    }

    NodeKeeper copy(final String node) {
      final long connected = executors.values().stream().filter(start -> start > 0).count();
      final int restarts = Math.max(0, starts.size() - 1);
      return new NodeKeeper(node, executors.size(), (int) connected, restarts, timeMillis, keeper);
    }
  }

  /** Adds what an executor reports. */
  void add(final ShuffleReport report) {
    final Keeper said = report.memory() == null ? null : report.memory().keeper();
    final String executor = report.executorId();
    final String node = report.node().isEmpty() ? executor : report.node();
    if (said != null && (nodes.size() < MAX_NODES || nodes.containsKey(node))) {
      final boolean isNew =
          nodes
              .computeIfAbsent(node, any -> new Known(executor, said))
              .add(executor, report.timeMillis(), said, executorCount < MAX_EXECUTORS);
      executorCount += isNew ? 1 : 0;
    }
  }

  /** An executor is gone; what the keeper of its node said stays. */
  void removed(final String executorId) {
    for (final Known known : nodes.values()) {
      executorCount -= known.executors.remove(executorId) == null ? 0 : 1;
    }
  }

  /**
   * Returns the keepers.
   *
   * @param names of nodes, by executor
   */
  List<NodeKeeper> lines(final Map<String, String> names) {
    final List<NodeKeeper> lines = new ArrayList<>();
    nodes.forEach((node, known) -> lines.add(known.copy(names.getOrDefault(known.first, node))));
    return lines;
  }

  /** Writes the table, if there are keepers. */
  static void render(final Html page, final List<NodeKeeper> keepers, final PageQuery query) {
    if (keepers.isEmpty()) {
      return;
    }
    page.heading(
        "Keepers",
        "A keeper holds the map outputs of executors that have ended. Counts are those since its"
            + " start, as it told an executor of its node last.");
    TABLE.render(page, keepers, query);
  }

  private static PagedTable<NodeKeeper> table() {
    return new PagedTable<NodeKeeper>("keepers")
        .text("Node", "", NodeKeeper::node)
        .text("Keeper", "Whether executors of the node are connected to it", NodeKeepers::state)
        .time("Since", "Start of the keeper", of(Keeper::started))
        .text("Release", "", one -> one.keeper().release())
        .number("Restarts", "Keepers that followed another one", NodeKeeper::restarts)
        .size("Holds", "Memory of executors that live and that have ended", of(Keeper::held))
        .size("of", "Limit of the keeper", of(Keeper::limit))
        .size("Left", "The part of executors that have ended", of(Keeper::left))
        .size("Files", "In files, of executors that have ended", of(Keeper::files))
        .size("of", "Limit of files; 0 if nothing goes there", of(Keeper::filesLimit))
        .number("Outputs", "Map outputs of executors that have ended", of(Keeper::outputs))
        .number("Adopted", "Map outputs that it took over", of(Keeper::adopted))
        .number("Removed for room", "Map outputs, where memory was short", of(Keeper::removed))
        .number("Refused", "Segments beyond its limit", of(Keeper::refused))
        .size("To this node", "Memory that executors of the node got to map", of(Keeper::shared))
        .size("Sent", "To executors of other nodes, and out of files", of(Keeper::sent))
        .time("Last report", "", NodeKeeper::timeMillis);
  }

  private static ToLongFunction<NodeKeeper> of(final ToLongFunction<Keeper> value) {
    return one -> value.applyAsLong(one.keeper());
  }

  private static String state(final NodeKeeper one) {
    if (one.executors() == 0) {
      return "no executor to ask";
    }
    if (one.connected() == 0) {
      return "not connected";
    }
    return one.connected() == one.executors()
        ? "connected"
        : "connected to " + one.connected() + " of " + one.executors() + " executors";
  }
}
