package io.zerohop.spark.executor;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The threads of docs/limits.md. */
class ThreadsPageTest {
  private static final Pattern MADE =
      Pattern.compile(
          "Threads\\.daemon(?:OfCaller)?\\([^;]*?\"(?:zerohop-)?([a-z-]+)"
              + "|[= (.]pool\\(\"([a-z]+)\",|everyLong\\(\\s*\"([a-z-]+)\""
              + "|Startup<>\\(\"zerohop-([a-z]+)\"");

  /** A row of those that are always there: a thread, and how many. */
  private static final Pattern AT_REST =
      Pattern.compile("\\| `zerohop-([a-z-]+)`(?:\\*name\\*)? \\| (\\d) \\|");

  private static final int MAX_AT_REST = 6;

  private static final Pattern LISTED = Pattern.compile("`zerohop-([a-z-]+)`");

  /** The process of a command is no executor. */
  private static final Set<String> ELSEWHERE = Set.of("doctor", "keeperdaemon", "rdmaproof");

  @Test
  void thePageListsTheThreadsThatTheCodeStarts() throws IOException {
    final Set<String> made = new TreeSet<>();
    for (final String module : Set.of("native", "shuffle", "plugin")) {
      try (Stream<Path> files = Files.walk(Path.of("..", module, "src", "main", "java"))) {
        for (final Path file : files.filter(ThreadsPageTest::isOfExecutors).toList()) {
          names(MADE, Files.readString(file), made);
        }
      }
    }
    final Set<String> listed = new TreeSet<>();
    names(LISTED, Files.readString(Path.of("../docs/limits.md")), listed);
    // Of copies within host memory that wait for a signal, which executors do not have.
    made.remove("copy-");
    // A hook, and a name that begins with a constant; others end with a variable.
    made.add("exit");
    made.add("control-connect-");
    made.removeIf(name -> name.startsWith("-") || name.equals("zerohop-"));
    assertThat(listed).isEqualTo(made);
  }

  @Test
  void anExecutorAtRestHasFewThreads() throws IOException {
    final String page = Files.readString(Path.of("../docs/limits.md"));
    final int begin = page.indexOf("At rest");
    final String listed = page.substring(begin, page.indexOf("Others come with work", begin));
    int threads = 0;
    for (final Matcher row = AT_REST.matcher(listed); row.find(); ) {
      threads += Integer.parseInt(row.group(2));
    }
    assertThat(threads).isBetween(1, MAX_AT_REST);
  }

  private static boolean isOfExecutors(final Path file) {
    return file.toString().endsWith(".java")
        && !ELSEWHERE.contains(file.getParent().getFileName().toString());
  }

  private static void names(final Pattern pattern, final String text, final Set<String> to) {
    for (final Matcher found = pattern.matcher(text); found.find(); ) {
      for (int group = 1; group <= found.groupCount(); group++) {
        if (found.group(group) != null) {
          to.add(found.group(group));
        }
      }
    }
  }
}
