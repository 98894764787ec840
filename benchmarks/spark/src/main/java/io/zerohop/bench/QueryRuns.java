package io.zerohop.bench;

import io.zerohop.workload.Outcome;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What one contender made of one query in all rounds, and the row that a measurement has of it. For
 * one thread.
 */
final class QueryRuns {
  private final String contender;
  private final String query;
  private final List<Double> seconds = new ArrayList<>();
  private Outcome last;
  private String error;
  private Boolean equal;
  private final Map<String, Object> disturbed = new LinkedHashMap<>();

  QueryRuns(final String contender, final String query) {
    this.contender = contender;
    this.query = query;
  }

  /** Notes a run that is not timed. */
  void warmedUp(final Outcome outcome) {
    note(outcome);
  }

  /** Notes a run that is. */
  void timed(final Outcome outcome) {
    note(outcome);
    if (outcome.succeeded()) {
      seconds.add(outcome.seconds());
    }
  }

  /** Notes whether the rows were the yardstick's. */
  void compared(final boolean same) {
    equal = same;
  }

  /**
   * Notes the run during which executors were killed.
   *
   * @param same whether the rows were those that the yardstick returned undisturbed
   */
  void killed(final Outcome outcome, final boolean same, final int kills) {
    disturbed.put("kills", kills);
    disturbed.put("killed_equal", same);
    if (outcome.succeeded()) {
      disturbed.put("killed_seconds", outcome.seconds());
      disturbed.put("map_tasks_again", outcome.mapTasksAgain());
    } else {
      disturbed.put("killed_error", outcome.error());
    }
  }

  private void note(final Outcome outcome) {
    if (outcome.succeeded()) {
      last = outcome;
    } else {
      error = outcome.error();
    }
  }

  boolean failed() {
    return error != null;
  }

  boolean isEqual() {
    return Boolean.TRUE.equals(equal);
  }

  boolean isBad() {
    return failed()
        || Boolean.FALSE.equals(equal)
        || Boolean.FALSE.equals(disturbed.get("killed_equal"));
  }

  /** Whether it ran in all rounds, at least one of which was timed. */
  boolean isTimed() {
    return !failed() && !seconds.isEmpty();
  }

  /** Bytes of shuffle blocks that the last run wrote; 0 if none succeeded. */
  long shuffleBytes() {
    return last == null ? 0 : last.shuffleBytes();
  }

  /** The median of the timed rounds. */
  double median() {
    return quantile(0.5);
  }

  /** Half the distance of the quartiles, as a part of the median. */
  double spread() {
    return (quantile(0.75) - quantile(0.25)) / 2 / median();
  }

  private double quantile(final double part) {
    final double[] sorted = seconds.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    final double at = part * (sorted.length - 1);
    final int below = (int) at;
    final int above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
  }

  /** What a measurement says of it. Bytes are those of the last run. */
  Map<String, Object> row() {
    final Map<String, Object> row = new LinkedHashMap<>();
    row.put("case", contender);
    row.put("query", query);
    if (isTimed()) {
      row.put("seconds", median());
      row.put("spread", spread());
      row.put("runs", seconds.size());
    }
    if (last != null) {
      row.put("shuffle_bytes", last.shuffleBytes());
      row.put("local_bytes", last.localBytes());
      row.put("peer_bytes", last.peerBytes());
      row.put("ucx_bytes", last.ucxBytes());
      row.put("sent_bytes", last.sentBytes());
      row.put("staged_bytes", last.stagedBytes());
      row.put("rows", last.rows());
    }
    if (equal != null) {
      row.put("equal", equal);
    }
    if (failed()) {
      row.put("error", error);
    }
    row.putAll(disturbed);
    return row;
  }
}
