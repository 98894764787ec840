package io.zerohop.spark.ui;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import com.fasterxml.jackson.databind.JsonNode;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure;
import io.zerohop.spark.report.Figure.Figures;
import io.zerohop.spark.report.ReportBounds;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Keeper;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The complete contents of the page at one moment. Written as JSON into the history server's store.
 * Immutable.
 *
 * @param pairs what went from each executor to each other, by path; beyond a limit from the others
 *     of a node to those of another one
 * @param shuffles the shuffles, the oldest first
 * @param contacts connections between executors, the oldest first
 * @param advice what the doctor would say
 * @param nodes which machine each executor is on, by the executor; also that of a node's others
 * @param expected bytes a second that links have at least, by the link's label: the least that
 *     executors say
 * @param rates what came over each link over time, the oldest first
 * @param keepers the keepers of nodes
 * @param refused parts of reports that no executor writes
 */
public record UiSnapshot(
    List<Pair> pairs,
    List<Shuffle> shuffles,
    List<Series> memory,
    List<ContactLine> contacts,
    List<AdviceLine> advice,
    Map<String, String> nodes,
    TaskTime tasks,
    Map<String, Long> expected,
    List<Rate> rates,
    List<NodeKeeper> keepers,
    long evictedShuffles,
    long evictedContacts,
    long executorsLeftOut,
    long refused) {

  /** Takes what an older release has not written for empty. */
  public UiSnapshot {
    pairs = pairs == null ? List.of() : pairs;
    shuffles = shuffles == null ? List.of() : shuffles;
    memory = memory == null ? List.of() : memory;
    contacts = contacts == null ? List.of() : contacts;
    advice = advice == null ? List.of() : advice;
    nodes = nodes == null ? Map.of() : nodes;
    tasks = tasks == null ? new TaskTime(0, 0) : tasks;
    expected = expected == null ? Map.of() : expected;
    rates = rates == null ? List.of() : rates;
    keepers = keepers == null ? List.of() : keepers;
  }

  /** Whether executors will report, and have not yet: not so where Zerohop has stepped aside. */
  boolean awaitsReports() {
    return memory.isEmpty() && shuffles.isEmpty() && pairs.isEmpty() && aside() == null;
  }

  /** Returns why Zerohop has stepped aside; null if it has not. */
  @Nullable Advice aside() {
    return advice.stream()
        .map(AdviceLine::advice)
        .filter(UiSnapshot::isAside)
        .findFirst()
        .orElse(null);
  }

  private static boolean isAside(final Advice line) {
    return line.check().equals("steps-aside") && line.verdict().equals("fail");
  }

  /** Whether nobody has reported anything. */
  boolean isVoid() {
    return memory.isEmpty() && shuffles.isEmpty() && advice.isEmpty();
  }

  /**
   * Blocks of one owner that one executor read over one link.
   *
   * @param busyMillis time during which they were handed out, in milliseconds
   * @param fullBytes the part of the bytes during which the link was in use without a break
   * @param fullMillis how long that was, in milliseconds
   */
  public record Pair(
      String reader,
      String owner,
      String path,
      String link,
      long blocks,
      long bytes,
      long busyMillis,
      long fullBytes,
      long fullMillis) {

    /** Takes a link that is missing for the path. */
    public Pair {
      link = link == null ? path : link;
    }

    /** Identifies a pair. */
    record Key(String reader, String owner, String path, String link) {}

    static Pair of(final String reader, final Flow flow) {
      return new Pair(
          reader,
          flow.owner(),
          flow.path(),
          flow.link(),
          flow.blocks(),
          flow.bytes(),
          flow.busyMillis(),
          flow.fullBytes(),
          flow.fullMillis());
    }

    Key key() {
      return new Key(reader, owner, path, link);
    }

    /** Returns this with another one's counts added. A sum of what is within bounds stays there. */
    Pair plus(final Pair more) {
      return new Pair(
          reader,
          owner,
          path,
          link,
          ReportBounds.plus(blocks, more.blocks),
          ReportBounds.plus(bytes, more.bytes),
          ReportBounds.plus(busyMillis, more.busyMillis),
          ReportBounds.plus(fullBytes, more.fullBytes),
          ReportBounds.plus(fullMillis, more.fullMillis));
    }

    Pair between(final String otherReader, final String otherOwner) {
      return new Pair(
          otherReader, otherOwner, path, link, blocks, bytes, busyMillis, fullBytes, fullMillis);
    }

    /** Bytes a second while the link was in use without a break; 0 if it never was. */
    double rate() {
      return fullMillis <= 0 ? 0 : 1e3 * fullBytes / fullMillis;
    }
  }

  /**
   * Time of tasks that read shuffles, in milliseconds, as Spark counts it.
   *
   * @param ran how long they ran, all together
   * @param waited the part of it in which they waited for blocks
   */
  public record TaskTime(long ran, long waited) {}

  /**
   * Bytes of each link within some time.
   *
   * @param timeMillis when it begins, in milliseconds since 1970
   * @param millis how long it is, in milliseconds
   * @param bytes by the link's label
   */
  public record Rate(long timeMillis, long millis, Map<String, Long> bytes) {}

  /**
   * One shuffle.
   *
   * @param blocks blocks that were read, by the path's label
   * @param bytes their bytes, by the path's label
   * @param waitNanos time in nanoseconds that readers waited, all together
   * @param fallbacks blocks that had to be staged, by the reason
   * @param causes what else is known of these reasons, where they are not of an earlier release
   */
  public record Shuffle(
      int shuffleId,
      List<Integer> writers,
      List<Integer> readers,
      Map<String, Long> blocks,
      Map<String, Long> bytes,
      long waitNanos,
      Map<String, Long> fallbacks,
      Map<String, Cause> causes) {

    /** Takes what an older release has not written for empty. */
    public Shuffle {
      causes = causes == null ? Map.of() : causes;
    }

    /** Returns the code of a reason; empty if it has none, or none is known. */
    String code(final String reason) {
      final Cause cause = causes.get(reason);
      return cause == null ? "" : cause.code();
    }
  }

  /**
   * An executor's pools.
   *
   * @param points the oldest first; not empty
   */
  public record Series(String executorId, List<Point> points) {
    Point last() {
      return points.get(points.size() - 1);
    }
  }

  /**
   * An executor's figures at one moment, in JSON each by its own name.
   *
   * @param timeMillis in milliseconds since 1970
   */
  public record Point(long timeMillis, Figures figures) {
    private static final String TIME = "timeMillis";

    @JsonCreator(mode = JsonCreator.Mode.DELEGATING)
    static Point read(final JsonNode fields) {
      return new Point(fields.path(TIME).longValue(), Figures.read(fields));
    }

    @JsonValue
    Map<String, Object> fields() {
      final Map<String, Object> fields = figures.fields();
      fields.put(TIME, timeMillis);
      return fields;
    }

    long get(final Figure figure) {
      return figures.get(figure);
    }
  }

  /**
   * The keeper of a node.
   *
   * @param node the node
   * @param executors executors of the node that report
   * @param connected those of them that are connected to it
   * @param restarts how often another one has followed one
   * @param timeMillis when it was reported last, in milliseconds since 1970
   * @param keeper what it said last; counts are those since its own start
   */
  public record NodeKeeper(
      String node, int executors, int connected, int restarts, long timeMillis, Keeper keeper) {}

  /**
   * A connection.
   *
   * @param timeMillis about when, in milliseconds since 1970
   */
  public record ContactLine(long timeMillis, String reader, String owner, String how) {}

  /**
   * A finding of the doctor on some processes.
   *
   * @param advice the line of its report, with the numbers of the first process that said it
   * @param processes of which it would say that: the driver and executors, the first few of them
   * @param count how many they are
   */
  public record AdviceLine(Advice advice, List<String> processes, int count) {
    /** Returns this finding as of one process more, which is named if there is room. */
    AdviceLine alsoOf(final String process, final int most) {
      final List<String> named =
          processes.size() < most
              ? Stream.concat(processes.stream(), Stream.of(process)).toList()
              : processes;
      return new AdviceLine(advice, named, count == Integer.MAX_VALUE ? count : count + 1);
    }
  }
}
