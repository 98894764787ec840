package io.zerohop.cluster;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalDouble;

/** The processor time of a thread in another process, by the thread's name. */
public final class ThreadTime {
  /** The kernel counts hundredths of a second for programs, whatever its own clock does. */
  private static final double TICKS_PER_SECOND = 100;

  // Behind the name in brackets, which may have blanks: state is the first, utime the 12th.
  private static final int USER = 11;
  private static final int SYSTEM = 12;

  private ThreadTime() {}

  /**
   * What a process' threads of that name have used so far, in seconds, the kernel's part included.
   *
   * @return nothing if it has no such thread, or has ended
   */
  public static OptionalDouble seconds(final long pid, final String thread) {
    OptionalDouble seconds = OptionalDouble.empty();
    try (DirectoryStream<Path> tasks =
        Files.newDirectoryStream(Path.of("/proc", Long.toString(pid), "task"))) {
      for (final Path task : tasks) {
        final OptionalDouble own = seconds(task.resolve("stat"), thread);
        if (own.isPresent()) {
          seconds = OptionalDouble.of(seconds.orElse(0) + own.getAsDouble());
        }
      }
      return seconds;
    } catch (final IOException | DirectoryIteratorException e) {
      return OptionalDouble.empty();
    }
  }

  private static OptionalDouble seconds(final Path file, final String thread) {
    final String stat;
    try {
      stat = Files.readString(file);
    } catch (final IOException e) {
      return OptionalDouble.empty(); // It ended between being listed and being read.
    }
    final int nameEnd = stat.lastIndexOf(')');
    if (!stat.substring(stat.indexOf('(') + 1, nameEnd).equals(thread)) {
      return OptionalDouble.empty();
    }
    final String[] fields = stat.substring(nameEnd + 1).strip().split(" ");
    return OptionalDouble.of(
        (Long.parseLong(fields[USER]) + Long.parseLong(fields[SYSTEM])) / TICKS_PER_SECOND);
  }
}
