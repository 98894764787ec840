package io.zerohop.gpu;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The counter of CUDA's copies in this process ({@code copy_counter.c}). CUDA loads it by itself,
 * from where {@code CUDA_INJECTION64_PATH} says; loading that file again finds the very same
 * counter.
 */
final class CopyCounter {
  private static final String LIBRARY = "CUDA_INJECTION64_PATH";
  private static final String OUT = "COPY_COUNTER_OUT";

  private static boolean loaded;
  private static long lastMark = -1;
  private static String lastLine;

  private CopyCounter() {}

  /**
   * What was counted until this process was first asked for this mark, as one line of JSON. Marks
   * only grow.
   */
  static synchronized String line(final long mark) throws IOException {
    if (mark != lastMark) {
      if (!loaded) {
        System.load(setting(LIBRARY));
        loaded = true;
      }
      final String prefix = setting(OUT);
      final int error = write(mark);
      if (error != 0) {
        throw new IOException("cannot write to " + prefix + ".<pid>: error " + error);
      }
      final List<String> lines =
          Files.readAllLines(Path.of(prefix + "." + ProcessHandle.current().pid()));
      lastLine = lines.get(lines.size() - 1);
      lastMark = mark;
    }
    return lastLine;
  }

  private static String setting(final String name) {
    final String value = System.getenv(name);
    if (value == null) {
      throw new IllegalStateException("copies are not counted here: " + name + " is not set");
    }
    return value;
  }

  /** Appends a line to the file; 0 or an error number. */
  private static native int write(long mark);
}
