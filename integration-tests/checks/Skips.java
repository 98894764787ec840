import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * Fails the build if more tests of a class were skipped than skips.txt, beside this file, allows on
 * this machine: {@code java integration-tests/checks/Skips.java REPORTS}, a folder of XML reports
 * as JUnit and ScalaTest write them.
 */
public final class Skips {
  private static final Path LIST = Path.of("integration-tests", "checks", "skips.txt");
  private static final long LIMIT_SECONDS = 60;

  /** A line of the list: so many tests of a class are skipped where one of its needs is missing. */
  private record Line(List<String> needs, int tests, String suite) {}

  private final Map<String, String> commands = new HashMap<>();
  private final Map<String, Boolean> met = new HashMap<>();
  private final List<Line> lines = new ArrayList<>();

  /** Which tests were skipped and why, by class. */
  private final Map<String, List<String>> skipped = new TreeMap<>();

  /** How many were skipped, by what is missing. */
  private final Map<String, Integer> counts = new TreeMap<>();

  private int tests;

  private Skips() {}

  public static void main(final String... args) throws Exception {
    final Skips skips = new Skips();
    skips.readList();
    skips.readReports(Path.of(args[0]));
    final List<String> problems = skips.problems();
    System.out.println("skips: " + skips.summary());
    problems.forEach(problem -> System.err.println("ERROR: " + problem));
    System.exit(problems.isEmpty() ? 0 : 1);
  }

  private void readList() throws IOException {
    for (final String line : Files.readAllLines(LIST)) {
      if (line.isBlank() || line.startsWith("#")) {
        continue;
      }
      final String[] words = line.strip().split("\\s+", 3);
      if (words[0].equals("need")) {
        commands.put(words[1], words[2]);
      } else {
        lines.add(new Line(List.of(words[0].split(",")), Integer.parseInt(words[1]), words[2]));
      }
    }
  }

  /** None is there if no test has run. */
  private void readReports(final Path folder) throws Exception {
    if (!Files.isDirectory(folder)) {
      return;
    }
    try (Stream<Path> files = Files.list(folder)) {
      for (final Path file : files.filter(f -> f.toString().endsWith(".xml")).toList()) {
        readReport(file);
      }
    }
  }

  private void readReport(final Path file) throws Exception {
    final NodeList cases =
        DocumentBuilderFactory.newInstance()
            .newDocumentBuilder()
            .parse(file.toFile())
            .getElementsByTagName("testcase");
    tests += cases.getLength();
    for (int i = 0; i < cases.getLength(); i++) {
      final Element test = (Element) cases.item(i);
      if (test.getElementsByTagName("skipped").item(0) instanceof Element why) {
        skipped
            .computeIfAbsent(test.getAttribute("classname"), suite -> new ArrayList<>())
            .add(test.getAttribute("name") + ": " + reason(why));
      }
    }
  }

  /** JUnit's conditions give a message, its assumptions a stack, and ScalaTest neither. */
  private static String reason(final Element skipped) {
    final String message = skipped.getAttribute("message");
    return message.isEmpty() ? skipped.getTextContent().strip().split("\n")[0] : message;
  }

  private List<String> problems() throws Exception {
    final List<String> problems = new ArrayList<>();
    for (final Map.Entry<String, List<String>> entry : skipped.entrySet()) {
      final String suite = entry.getKey();
      final List<String> reasons = entry.getValue();
      int allowed = 0;
      final List<String> missing = new ArrayList<>();
      for (final Line line : lines) {
        if (line.suite().equals(suite) && !missing(line).isEmpty()) {
          allowed += line.tests();
          missing.addAll(missing(line));
        }
      }
      counts.merge(
          missing.isEmpty() ? "nothing" : String.join(", ", missing), reasons.size(), Integer::sum);
      if (reasons.size() > allowed) {
        problems.add(
            "%s: %d skipped, and %s allows %d here:%n  %s"
                .formatted(suite, reasons.size(), LIST, allowed, String.join("\n  ", reasons)));
      } else if (reasons.size() < allowed) {
        System.out.printf(
            "NOTICE: %s: %d skipped, %s has %d%n", suite, reasons.size(), LIST, allowed);
      }
    }
    return problems;
  }

  private List<String> missing(final Line line) throws Exception {
    final List<String> missing = new ArrayList<>();
    for (final String need : line.needs()) {
      if (!isMet(need)) {
        missing.add(need);
      }
    }
    return missing;
  }

  private boolean isMet(final String need) throws Exception {
    if (!met.containsKey(need)) {
      if (!commands.containsKey(need)) {
        throw new IllegalStateException(LIST + " does not say what '" + need + "' is");
      }
      final Process process =
          new ProcessBuilder("sh", "-c", commands.get(need))
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new IllegalStateException("does not end: " + commands.get(need));
      }
      met.put(need, process.exitValue() == 0);
    }
    return met.get(need);
  }

  private String summary() {
    final int sum = counts.values().stream().mapToInt(count -> count).sum();
    final List<String> parts = new ArrayList<>();
    counts.forEach((missing, count) -> parts.add(count + " for want of " + missing));
    return "%d of %d tests were skipped%s"
        .formatted(sum, tests, sum == 0 ? "" : ": " + String.join("; ", parts));
  }
}
