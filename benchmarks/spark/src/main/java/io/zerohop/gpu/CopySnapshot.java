package io.zerohop.gpu;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * What all executors have counted until one moment.
 *
 * @param executors the line of {@link CopyCounter} of each executor, by its id
 */
record CopySnapshot(Map<String, JsonNode> executors) {
  private static final long LIMIT_SECONDS = 60;
  private static final long HOLD_MS = 200;

  /** An executor's id and its line. */
  private record Answer(String executor, String line) implements java.io.Serializable {}

  /**
   * Asks all executors by a job of as many tasks as run at a time, again until all have answered.
   *
   * @param expected how many executors there are
   * @param mark a number larger than that of any snapshot before
   */
  static CopySnapshot take(final JavaSparkContext spark, final int expected, final long mark)
      throws IOException, ExecutionException, InterruptedException, TimeoutException {
    final long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
    final Map<String, JsonNode> executors = new TreeMap<>();
    while (executors.size() < expected) {
      final long left = deadline - System.nanoTime();
      if (left <= 0) {
        throw new TimeoutException(
            executors.size()
                + " of "
                + expected
                + " executors answered in "
                + LIMIT_SECONDS
                + " s");
      }
      final int tasks = spark.defaultParallelism();
      for (final Answer answer :
          spark
              .parallelize(Collections.nCopies(tasks, mark), tasks)
              .map(CopySnapshot::answer)
              .collectAsync()
              .get(left, TimeUnit.NANOSECONDS)) {
        executors.putIfAbsent(answer.executor, parse(answer));
      }
    }
    if (executors.size() > expected) {
      throw new IllegalStateException(executors.size() + " executors instead of " + expected);
    }
    return new CopySnapshot(executors);
  }

  private static JsonNode parse(final Answer answer) throws JsonProcessingException {
    final JsonNode line = new ObjectMapper().readTree(answer.line);
    final String state = line.get("state").asText();
    if (!state.equals("counting")) {
      throw new IllegalStateException(
          "executor " + answer.executor + " does not count copies: " + state);
    }
    return line;
  }

  /** Holds its slot for a while, so that the other tasks go to the other executors. */
  private static Answer answer(final long mark) throws IOException, InterruptedException {
    final String line = CopyCounter.line(mark);
    Thread.sleep(HOLD_MS);
    return new Answer(SparkEnv.get().executorId(), line);
  }
}
