package io.zerohop.spark.ui;

import io.zerohop.spark.report.Advice;
import java.util.List;
import java.util.Map;

/**
 * All that the page shows, at one moment. Written as JSON into the history server's store.
 * Immutable.
 *
 * @param pairs what went from each executor to each other, by path
 * @param shuffles the shuffles, the oldest first
 * @param memory each executor's pools over time
 * @param contacts connections between executors, the oldest first
 * @param advice what the doctor would say
 * @param evictedShuffles older shuffles that are not kept
 * @param evictedContacts older contacts that are not kept
 * @param executorsLeftOut executors whose pools are not kept
 * @param refused parts of reports that no executor writes
 */
public record UiSnapshot(
    List<Pair> pairs,
    List<Shuffle> shuffles,
    List<Series> memory,
    List<ContactLine> contacts,
    List<AdviceLine> advice,
    long evictedShuffles,
    long evictedContacts,
    long executorsLeftOut,
    long refused) {

  /** Takes a list that an older release has not written for an empty one. */
  public UiSnapshot {
    advice = advice == null ? List.of() : advice;
  }

  /** Whether executors will report, and have not yet: not so where Zerohop has stepped aside. */
  boolean awaitsReports() {
    return memory.isEmpty()
        && shuffles.isEmpty()
        && advice.stream().map(AdviceLine::advice).noneMatch(UiSnapshot::isAside);
  }

  private static boolean isAside(final Advice line) {
    return line.check().equals("steps-aside") && line.verdict().equals("fail");
  }

  /** Whether nobody has reported anything. */
  boolean isVoid() {
    return memory.isEmpty() && shuffles.isEmpty() && advice.isEmpty();
  }

  /**
   * What one executor got of another one's blocks by one path.
   *
   * @param reader who got them
   * @param owner who had them
   * @param path the path's label
   * @param blocks how many
   * @param bytes their bytes
   * @param busyMillis time during which they were handed out, in milliseconds
   */
  public record Pair(
      String reader, String owner, String path, long blocks, long bytes, long busyMillis) {}

  /**
   * One shuffle.
   *
   * @param shuffleId its id
   * @param writers stages that wrote it
   * @param readers stages that read it
   * @param blocks blocks that were read, by the path's label
   * @param bytes their bytes, by the path's label
   * @param waitNanos time in nanoseconds that readers waited, all together
   * @param fallbacks blocks that had to be staged, by the reason
   */
  public record Shuffle(
      int shuffleId,
      List<Integer> writers,
      List<Integer> readers,
      Map<String, Long> blocks,
      Map<String, Long> bytes,
      long waitNanos,
      Map<String, Long> fallbacks) {}

  /**
   * An executor's pools.
   *
   * @param executorId the executor
   * @param points the oldest first; not empty
   */
  public record Series(String executorId, List<Point> points) {}

  /**
   * An executor's pools at one moment; all but the time in bytes, as in {@link
   * io.zerohop.spark.report.ShuffleReport.Memory}.
   *
   * @param timeMillis in milliseconds since 1970
   */
  public record Point(
      long timeMillis,
      long hostUsed,
      long hostLimit,
      long deviceUsed,
      long deviceLimit,
      long files,
      long overflowed,
      long spilledToHost,
      long spilledToFiles) {}

  /**
   * A connection.
   *
   * @param timeMillis about when, in milliseconds since 1970
   * @param reader who connected
   * @param owner to whom
   * @param how by what
   */
  public record ContactLine(long timeMillis, String reader, String owner, String how) {}

  /**
   * What the doctor would say of some processes.
   *
   * @param advice the line of its report, with the numbers of the first process that said it
   * @param processes of which it would say that: the driver and executors, the first few of them
   * @param count how many they are
   */
  public record AdviceLine(Advice advice, List<String> processes, int count) {}
}
