import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Traces the figures under docs/measurements to commits: {@code java
 * integration-tests/checks/Measurements.java check|stale|summary [ROOT]}, in the repository's root.
 *
 * <ul>
 *   <li>{@code check} fails if a figure, or a page, names a commit that is no ancestor of HEAD, if
 *       paths.txt and the files differ, or if a table of docs/benchmarks.md is of another run than
 *       its file.
 *   <li>{@code stale} lists the files that are older than the last change of what they depend on.
 *   <li>{@code summary} says in one line how many those are; it never fails.
 * </ul>
 *
 * Without a git history {@code check} fails; the test that runs it skips there.
 */
public final class Measurements {
  private static final long LIMIT_SECONDS = 60;
  private static final int SHOWN_DIGITS = 12;

  private static final String COMMIT = "[0-9a-f]{7,40}";
  private static final Pattern FIELD =
      Pattern.compile("\"commit\"\\s*:\\s*(\"[^\"]*\")|\"commits\"\\s*:\\s*(\\[[^\\]]*\\])");
  private static final Pattern TEXT = Pattern.compile("\"([^\"]*)\"");

  /** A hash in a note: digits and letters, which no number and no word has. */
  private static final Pattern NOTED =
      Pattern.compile("\\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])" + COMMIT + "\\b");

  private static final Pattern SESSIONS = Pattern.compile("\"sessions\"\\s*:\\s*\\[[^\\]]*\\]");
  private static final Pattern SAID = Pattern.compile("\\bcommit (" + COMMIT + ")\\b");
  private static final Pattern LINK =
      Pattern.compile("\\]\\((?:[\\w./]*/)?measurements/(\\w+\\.(?:json|svg))\\)");
  private static final Pattern SECTION = Pattern.compile("<!-- (\\w+):begin -->");

  private final Path root;
  private final Path folder;
  private final Map<String, Figures> files = new TreeMap<>();
  private final Map<String, List<String>> sets = new HashMap<>();
  private final Map<String, String> listed = new LinkedHashMap<>();
  private final List<Change> changes = new ArrayList<>();
  private final List<String> problems = new ArrayList<>();
  private List<String> history = List.of();

  /** One JSON file: the text before its rows, and the commits that its rows name. */
  private record Figures(String head, List<String> own, List<String> rows) {}

  /** A change behind which older files of a set get words under their tables. */
  private record Change(String set, String commit, String words) {}

  private Measurements(final Path root) {
    this.root = root;
    folder = root.resolve("docs").resolve("measurements");
  }

  public static void main(final String... args) throws Exception {
    final String command = args.length == 0 ? "" : args[0];
    final Measurements all = new Measurements(Path.of(args.length > 1 ? args[1] : "."));
    switch (command) {
      case "check" -> System.exit(all.check());
      case "stale" -> System.exit(all.stale());
      case "summary" -> all.summary();
      default -> {
        System.err.println("Measurements.java check|stale|summary [ROOT]");
        System.exit(2);
      }
    }
  }

  private int check() throws Exception {
    read();
    final String missing = missingHistory();
    if (missing == null) {
      files.forEach(this::trace);
      tracePages();
    } else {
      problems.add(missing);
    }
    comparePaths();
    compareTables();
    problems.forEach(problem -> System.err.println("ERROR: " + problem));
    System.out.printf("measurements: %d files, %d problems%n", files.size(), problems.size());
    return problems.isEmpty() ? 0 : 1;
  }

  private int stale() throws Exception {
    read();
    final String missing = missingHistory();
    if (missing != null) {
      System.err.println("ERROR: " + missing);
      return 1;
    }
    for (final String name : files.keySet()) {
      final String commit = commitOf(name);
      final int behind = behind(name, commit);
      System.out.printf(
          "%-24s %-12s  %s%n",
          name,
          commit == null ? "-" : shown(commit),
          behind < 0
              ? "cannot be traced"
              : behind == 0
                  ? "up to date"
                  : "behind by %d: %s".formatted(behind, listed.get(name)));
    }
    return 0;
  }

  private void summary() throws Exception {
    read();
    final String missing = missingHistory();
    if (missing != null) {
      System.out.println("measurements: not compared with the code: " + missing);
      return;
    }
    int older = 0;
    for (final String name : files.keySet()) {
      older += behind(name, commitOf(name)) == 0 ? 0 : 1;
    }
    System.out.printf(
        "measurements: %d of %d are older than the last change of what they depend on;"
            + " make stale lists them%n",
        older, files.size());
  }

  private void read() throws IOException {
    try (Stream<Path> found = Files.list(folder)) {
      for (final Path file : found.filter(each -> each.toString().endsWith(".json")).toList()) {
        final String text = Files.readString(file);
        final int rows = text.indexOf("\"rows\":");
        final String head = rows < 0 ? text : text.substring(0, rows);
        final String name = file.getFileName().toString().replace(".json", "");
        files.put(
            name,
            new Figures(head, fields(head), rows < 0 ? List.of() : fields(text.substring(rows))));
      }
    }
    for (final String line : Files.readAllLines(folder.resolve("paths.txt"))) {
      if (!line.isBlank() && !line.startsWith("#")) {
        readLine(line.strip().split("\\s+"));
      }
    }
  }

  private void readLine(final String... words) {
    switch (words[0]) {
      case "set" -> sets.put(words[1], List.of(words).subList(2, words.length));
      case "older" ->
          changes.add(
              new Change(
                  words[1], words[2], String.join(" ", List.of(words).subList(3, words.length))));
      default -> {
        for (final String name : List.of(words).subList(1, words.length)) {
          if (listed.put(name, words[0]) != null) {
            problems.add("paths.txt has " + name + " twice");
          }
        }
      }
    }
  }

  /** Returns all values of fields that name commits, each once. */
  private static List<String> fields(final String text) {
    return FIELD
        .matcher(text)
        .results()
        .flatMap(
            field ->
                TEXT.matcher(field.group(1) == null ? field.group(2) : field.group(1)).results())
        .map(value -> value.group(1))
        .distinct()
        .toList();
  }

  /** Reads the history, or returns why there is none to compare with. */
  private String missingHistory() throws Exception {
    if (!Files.exists(root.resolve(".git"))) {
      return "there is no .git here, so no figure can be traced; use a clone";
    }
    try {
      if (git("rev-parse", "--is-shallow-repository").get(0).equals("true")) {
        return "this clone is shallow, so figures cannot be traced; run git fetch --unshallow";
      }
      history = git("rev-list", "HEAD");
      return null;
    } catch (final IOException | IllegalStateException e) {
      return "git does not give the history: " + e.getMessage();
    }
  }

  private void trace(final String name, final Figures figures) {
    if (figures.own().isEmpty()) {
      problems.add(name + ".json names no commit");
    }
    final boolean inRows = !figures.rows().isEmpty();
    for (final String commit : figures.own()) {
      if (!(inRows && commit.equals("in each row"))) {
        trace(name + ".json", commit);
      }
    }
    figures.rows().forEach(commit -> trace("a row of " + name + ".json", commit));
    NOTED
        .matcher(SESSIONS.matcher(figures.head()).replaceAll(""))
        .results()
        .map(MatchResult::group)
        .filter(noted -> figures.own().stream().noneMatch(own -> own.contains(noted)))
        .forEach(commit -> trace("a note in " + name + ".json", commit));
  }

  private void trace(final String where, final String commit) {
    if (!commit.matches(COMMIT)) {
      problems.add("%s is of \"%s\", which is no commit".formatted(where, commit));
    } else if (history.stream().noneMatch(known -> known.startsWith(commit))) {
      problems.add(
          "%s names %s, which is no ancestor of HEAD; measure a commit of this history again, or"
                  .formatted(where, shown(commit))
              + " remove the figure");
    }
  }

  private void tracePages() throws IOException {
    for (final Path page : pages()) {
      final String text = Files.readString(page);
      final Path name = root.relativize(page);
      SAID.matcher(text).results().forEach(said -> trace(name.toString(), said.group(1)));
      LINK.matcher(text)
          .results()
          .map(link -> link.group(1))
          .distinct()
          .filter(file -> !Files.exists(folder.resolve(file)))
          .forEach(
              file -> problems.add(name + " links to measurements/" + file + ": no such file"));
    }
  }

  private List<Path> pages() throws IOException {
    final List<Path> pages = new ArrayList<>();
    try (Stream<Path> top = Files.list(root);
        Stream<Path> docs = Files.walk(root.resolve("docs"))) {
      Stream.concat(top, docs).filter(page -> page.toString().endsWith(".md")).forEach(pages::add);
    }
    return pages;
  }

  private void comparePaths() {
    for (final String name : files.keySet()) {
      if (!listed.containsKey(name)) {
        problems.add("docs/measurements/paths.txt does not say on what " + name + ".json depends");
      }
    }
    listed.forEach(
        (name, set) -> {
          if (!files.containsKey(name)) {
            problems.add("docs/measurements/paths.txt has " + name + ", which is no file");
          }
          if (!sets.containsKey(set)) {
            problems.add("docs/measurements/paths.txt has no set " + set);
          }
        });
    sets.forEach(
        (set, paths) -> {
          for (final String path : paths) {
            if (!Files.exists(root.resolve(path.replace(":!", "")))) {
              problems.add("docs/measurements/paths.txt, set %s: no %s".formatted(set, path));
            }
          }
        });
  }

  /** Compares what stands under each table with the run that its file is of. */
  private void compareTables() throws Exception {
    final Path file = root.resolve("docs").resolve("benchmarks.md");
    final String page = Files.exists(file) ? Files.readString(file) : "";
    for (final String name : SECTION.matcher(page).results().map(each -> each.group(1)).toList()) {
      final Figures figures = files.get(name);
      final int begin = page.indexOf("<!-- " + name + ":begin -->");
      final int end = page.indexOf("<!-- " + name + ":end -->");
      if (figures == null || end < begin) {
        problems.add("docs/benchmarks.md has a table " + name + " without a file");
        continue;
      }
      final String table = page.substring(begin, end);
      if (figures.own().stream().noneMatch(own -> table.contains("commit " + shown(own)))) {
        problems.add("docs/benchmarks.md, table " + name + ": of another run than its file");
      }
      for (final Change change : changes) {
        final boolean older =
            history.isEmpty() ? table.contains(change.words()) : isOlder(name, change);
        if (older != table.contains(change.words())) {
          problems.add(
              "docs/benchmarks.md, table %s: %s \"%s\"; bench/plot.py writes it"
                  .formatted(name, older ? "lacks" : "is not", change.words()));
        }
      }
    }
  }

  private boolean isOlder(final String name, final Change change) throws Exception {
    return change.set().equals(listed.get(name))
        && commitOf(name) != null
        && git("rev-list", "-1", change.commit(), "^" + commitOf(name)).size() == 1;
  }

  /** Returns the commit of a file: its own, or the newest that its rows name; null if unknown. */
  private String commitOf(final String name) {
    final Figures figures = files.get(name);
    return history.stream()
        .filter(known -> figures.own().stream().anyMatch(known::equals))
        .findFirst()
        .or(() -> history.stream().filter(known -> figures.rows().contains(known)).findFirst())
        .orElse(null);
  }

  /** Returns how many commits have changed what a file depends on since; -1 if that is unknown. */
  private int behind(final String name, final String commit) throws Exception {
    if (commit == null || !sets.containsKey(listed.get(name))) {
      return -1;
    }
    final List<String> command = new ArrayList<>(List.of("rev-list", commit + "..HEAD", "--"));
    command.addAll(sets.get(listed.get(name)));
    return git(command.toArray(String[]::new)).size();
  }

  private static String shown(final String commit) {
    return commit.length() <= SHOWN_DIGITS ? commit : commit.substring(0, SHOWN_DIGITS);
  }

  private List<String> git(final String... arguments) throws Exception {
    final List<String> command = new ArrayList<>(List.of("git", "-C", root.toString()));
    command.addAll(List.of(arguments));
    final Path out = Files.createTempFile("git", ".out");
    try {
      final Process process =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(out.toFile())
              .start();
      if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new IllegalStateException("does not end: " + String.join(" ", command));
      }
      final List<String> lines = Files.readAllLines(out);
      if (process.exitValue() != 0) {
        throw new IllegalStateException(String.join(" ", command) + ": " + String.join(" ", lines));
      }
      return lines;
    } finally {
      Files.delete(out);
    }
  }
}
