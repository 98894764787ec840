package io.zerohop.spark.doctor;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A JVM that is watched from its start to its end: each socket at which it listens is seen, by a
 * library before the C library's, and by the kernel's tables. Its folder is the caller's.
 */
final class Watched {
  private static final long LIMIT_SECONDS = 170;
  private static final long POLL_MILLIS = 20;
  private static final String TCP_LISTEN = "0A";
  private static final String UNIX_LISTEN = "00010000";

  private final Path folder;

  /** What the process printed. */
  private String output = "";

  /**
   * Listeners that were seen: {@code tcp ADDRESS PORT}, or {@code unix PATH}, with @ if abstract.
   */
  private final Set<String> listeners = new TreeSet<>();

  /** The same by the kernel's tables, as these write them. */
  private final Set<String> kernels = new TreeSet<>();

  private int exit;

  Watched(final Path folder) {
    this.folder = folder;
  }

  /**
   * Runs a class of this class path to its end.
   *
   * @param environment beside this process's own
   */
  void run(final Map<String, String> environment, final String main, final String... arguments)
      throws IOException, InterruptedException {
    final List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(
        List.of(
            "-Xmx256m",
            "-XX:-UsePerfData",
            "-XX:TieredStopAtLevel=1",
            "-Djava.io.tmpdir=" + folder));
    command.addAll(List.of("-Dwatched=" + folder, "-cp", System.getProperty("java.class.path")));
    command.add(main);
    command.addAll(Arrays.asList(arguments));
    final File out = folder.resolve("out.txt").toFile();
    final Path log = folder.resolve("listeners.txt");
    final ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out);
    builder.environment().putAll(environment);
    builder.environment().put("LD_PRELOAD", library().toString());
    builder.environment().put("LISTENERS", log.toString());
    final Process process = builder.start();
    try {
      final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
      while (!process.waitFor(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
        look(process.pid());
        if (System.nanoTime() > end) {
          throw new AssertionError("it did not end: " + command);
        }
      }
    } finally {
      process.destroyForcibly();
    }
    exit = process.exitValue();
    output = Files.readString(out.toPath());
    if (Files.exists(log)) {
      Files.readAllLines(log).forEach(line -> listeners.add(line.substring(line.indexOf(' ') + 1)));
    }
  }

  private Path library() throws IOException, InterruptedException {
    final Path library = folder.resolve("listens.so");
    final Process compiler =
        new ProcessBuilder(
                "cc", "-shared", "-fPIC", "-o", library + "", "src/test/c/listens.c", "-ldl")
            .inheritIO()
            .start();
    if (compiler.waitFor() != 0) {
      throw new AssertionError("cannot compile listens.c");
    }
    return library;
  }

  /** What the kernel says that the process listens at now. */
  private void look(final long pid) {
    final Path process = Path.of("/proc/" + pid);
    try {
      final Set<String> own = new HashSet<>();
      try (Stream<Path> descriptors = Files.list(process.resolve("fd"))) {
        for (final Path one : (Iterable<Path>) descriptors::iterator) {
          if (Files.isSymbolicLink(one) && Files.exists(one, LinkOption.NOFOLLOW_LINKS)) {
            own.add(Files.readSymbolicLink(one).toString());
          }
        }
      }
      for (final String table : List.of("tcp", "tcp6", "unix")) {
        for (final String line : Files.readAllLines(process.resolve("net").resolve(table))) {
          final String[] fields = line.trim().split("\\s+");
          final boolean unix = table.equals("unix");
          final boolean listens =
              unix ? fields[3].equals(UNIX_LISTEN) : fields[3].equals(TCP_LISTEN);
          if (listens && own.contains("socket:[" + fields[unix ? 6 : 9] + "]")) {
            kernels.add(table + " " + (unix ? fields.length > 7 ? fields[7] : "@" : fields[1]));
          }
        }
      }
    } catch (final IOException | java.io.UncheckedIOException e) {
      return; // A descriptor, or the process, is gone meanwhile.
    }
  }

  String output() {
    return output;
  }

  int exit() {
    return exit;
  }

  /** Where others can connect to it: TCP, and sockets without a file that says who may. */
  Set<String> open() {
    final Set<String> open = new TreeSet<>();
    listeners.stream().filter(it -> !it.startsWith("unix /")).forEach(open::add);
    kernels.stream().filter(it -> !it.startsWith("unix /")).forEach(open::add);
    return open;
  }

  /** The sockets that have a file. */
  Set<String> files() {
    final Set<String> files = new TreeSet<>(listeners);
    files.addAll(kernels);
    files.removeAll(open());
    return files;
  }
}
