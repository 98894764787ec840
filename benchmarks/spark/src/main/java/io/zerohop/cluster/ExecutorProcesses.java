package io.zerohop.cluster;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The executors of an application whose cluster runs in its driver. */
public final class ExecutorProcesses {
  private static final String EXECUTOR_CLASS = "CoarseGrainedExecutorBackend";

  private ExecutorProcesses() {}

  /**
   * Those that run now.
   *
   * @param driver the process that the executors descend from
   */
  public static List<ProcessHandle> of(final ProcessHandle driver) {
    return driver.descendants().filter(ExecutorProcesses::isExecutor).toList();
  }

  private static boolean isExecutor(final ProcessHandle process) {
    final Path words = Path.of("/proc", Long.toString(process.pid()), "cmdline");
    try {
      return new String(Files.readAllBytes(words), StandardCharsets.UTF_8).contains(EXECUTOR_CLASS);
    } catch (final IOException e) {
      return false; // It ended between being listed and being read.
    }
  }
}
