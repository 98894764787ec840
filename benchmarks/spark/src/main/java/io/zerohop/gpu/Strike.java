package io.zerohop.gpu;

import static org.apache.spark.sql.functions.udf;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.types.DataTypes;

/** A task that kills the other executors of its application, which all have one parent. */
public final class Strike {
  private static final Duration LIMIT = Duration.ofSeconds(20);

  private Strike() {}

  /**
   * A function that returns what it is given, and in one partition strikes the first time that it
   * is called there.
   *
   * @param marker path of a file that does not exist yet, on the executors' host
   */
  public static UserDefinedFunction in(final int partition, final String marker) {
    return udf(
            (UDF1<Long, Long>)
                id -> {
                  if (TaskContext.getPartitionId() == partition && !Files.exists(Path.of(marker))) {
                    once(Path.of(marker));
                  }
                  return id;
                },
            DataTypes.LongType)
        .asNondeterministic();
  }

  /**
   * Kills them, the first time that it is called with this file; returns when they are gone.
   *
   * @param marker a file that does not exist yet, on the executors' host
   */
  public static void once(final Path marker) throws IOException {
    try {
      Files.createFile(marker);
    } catch (final FileAlreadyExistsException other) {
      return;
    }
    final ProcessHandle self = ProcessHandle.current();
    final List<ProcessHandle> others =
        self.parent().orElseThrow().children().filter(p -> p.pid() != self.pid()).toList();
    others.forEach(ProcessHandle::destroyForcibly);
    CompletableFuture.allOf(
            others.stream().map(ProcessHandle::onExit).toArray(CompletableFuture[]::new))
        .orTimeout(LIMIT.toSeconds(), TimeUnit.SECONDS)
        .join();
  }
}
