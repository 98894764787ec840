package io.zerohop.device;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Descriptors, shared mappings and threads that are ours; taken before a test, compared after. */
public final class Leaks {
  private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(20);
  private static final int LONGEST_PAUSE_MILLIS = 80;

  private final Map<String, Integer> before = snapshot();

  /** Fails unless everything is back, given some time for threads that are about to end. */
  public void check() {
    final long start = System.nanoTime();
    Map<String, Integer> now = snapshot();
    for (int pause = 5; exceeds(now) && System.nanoTime() - start < LIMIT_NANOS; pause *= 2) {
      sleep(Math.min(pause, LONGEST_PAUSE_MILLIS)); // A look costs milliseconds, too.
      now = snapshot();
    }
    if (exceeds(now)) {
      throw new AssertionError("leak: before " + before + ", now " + now);
    }
  }

  /** Less than before is no leak: an earlier test's sockets may have been about to close. */
  private boolean exceeds(final Map<String, Integer> now) {
    return now.entrySet().stream()
        .anyMatch(kind -> kind.getValue() > before.getOrDefault(kind.getKey(), 0));
  }

  private static void sleep(final int millis) {
    try {
      Thread.sleep(millis);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("interrupted", e);
    }
  }

  private static Map<String, Integer> snapshot() {
    final TreeMap<String, Integer> counts = new TreeMap<>();
    counts.put("mappings", mappings());
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
      descriptors
          .map(Leaks::kind)
          .filter(kind -> !kind.isEmpty())
          .forEach(kind -> counts.merge(kind, 1, Integer::sum));
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
    Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("zerohop-"))
        .forEach(name -> counts.merge(name, 1, Integer::sum));
    return counts;
  }

  /** Only what this module opens: class loading opens files too, whenever it likes. */
  private static String kind(final Path fd) {
    try {
      final String target = Files.readSymbolicLink(fd).toString();
      if (target.startsWith("/memfd:") || target.contains("zerohop") && !target.endsWith(".jar")) {
        return "memory and folders";
      }
      return target.startsWith("socket:") || target.contains("eventfd") ? "sockets" : "";
    } catch (final IOException e) {
      return ""; // The descriptor of the listing itself.
    }
  }

  /** Mappings of shared memory in this process. */
  public static int mappings() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return (int) lines.filter(line -> line.contains("/memfd:zerohop")).count();
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
