package io.zerohop.workload;

import java.util.Map;

/**
 * What one run of a workload cost and moved.
 *
 * @param workload its name
 * @param error why it failed, or null
 * @param rows how many rows it returned
 * @param seconds from planning until the last row was at the driver
 * @param stageMs the wall time of the stages that wrote or read a shuffle, summed
 * @param writeNanos the time that tasks spent writing shuffle blocks, summed, as Spark counts it
 * @param fetchWaitMs the time that tasks waited for shuffle blocks, summed
 * @param shuffleBytes bytes of shuffle blocks written
 * @param localBytes bytes that Zerohop read from the reader's own executor
 * @param peerBytes bytes that Zerohop read from another process' memory
 * @param ucxBytes bytes that Zerohop read from another node's memory
 * @param sentBytes bytes that owners on other nodes sent over Spark's block ports
 * @param stagedBytes bytes that Zerohop read through Spark's block transfer
 * @param mapTasksAgain map tasks of which another one had succeeded before
 * @param rpc what {@link RpcProbe} has measured meanwhile
 */
public record Outcome(
    String workload,
    String error,
    long rows,
    double seconds,
    long stageMs,
    long writeNanos,
    long fetchWaitMs,
    long shuffleBytes,
    long localBytes,
    long peerBytes,
    long ucxBytes,
    long sentBytes,
    long stagedBytes,
    int mapTasksAgain,
    Map<String, Long> rpc) {

  /** The outcome of a run that threw. */
  public static Outcome failed(final String workload, final Throwable cause) {
    return new Outcome(workload, cause.toString(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Map.of());
  }

  /** Whether it ran to its end. */
  public boolean succeeded() {
    return error == null;
  }
}
