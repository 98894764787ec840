package io.zerohop.cluster;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A command of the system that is run to its end, which comes within a limit or by SIGKILL. */
final class SystemCommand {
  private static final long LIMIT_SECONDS = 60;

  private SystemCommand() {}

  /**
   * Runs a command.
   *
   * @return what it has printed
   * @throws ClusterException if it cannot be started, fails or does not end; the message has what
   *     it has printed
   */
  static String run(final List<String> command) {
    final String line = String.join(" ", command);
    try {
      final Path out = Files.createTempFile("zerohop-command", ".txt");
      try {
        return run(line, command, out);
      } finally {
        Files.delete(out);
      }
    } catch (final IOException e) {
      throw new ClusterException("'" + line + "' could not be started", e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ClusterException("'" + line + "' was not waited for: interrupted", e);
    }
  }

  private static String run(final String line, final List<String> command, final Path out)
      throws IOException, InterruptedException {
    // A file, since nobody would read a pipe while the end is waited for.
    final Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
    final boolean ended;
    try {
      ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
    } finally {
      process.destroyForcibly();
    }
    final String said = Files.readString(out, StandardCharsets.UTF_8).strip();
    if (!ended) {
      throw new ClusterException(
          "'" + line + "' did not end within " + LIMIT_SECONDS + " s: " + said);
    }
    if (process.exitValue() != 0) {
      throw new ClusterException(
          "'" + line + "' ended with status " + process.exitValue() + ": " + said);
    }
    return said;
  }
}
