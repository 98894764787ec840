package io.zerohop.spark.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs integration-tests/checks/Measurements.java on this repository and on small ones. */
class MeasurementsTest {
  private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();
  private static final Path CHECK =
      REPOSITORY.resolve("integration-tests").resolve("checks").resolve("Measurements.java");
  private static final String UNKNOWN = "0123456789abcdef0123456789abcdef01234567";
  private static final long LIMIT_SECONDS = 120;

  @TempDir private static Path classes;

  /** What a command has printed, and its exit status. */
  private record Outcome(int status, String text) {}

  @BeforeAll
  static void compile() throws Exception {
    assertThat(
            ToolProvider.getSystemJavaCompiler()
                .run(null, null, null, "-d", classes.toString(), CHECK.toString()))
        .isZero();
  }

  private static Outcome run(final List<String> command) throws Exception {
    final Path out = Files.createTempFile(classes, "out", ".txt");
    final Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
    assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).as("%s ends", command).isTrue();
    return new Outcome(process.exitValue(), Files.readString(out));
  }

  private static Outcome measurements(final String command, final Path root) throws Exception {
    return run(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-cp",
            classes.toString(),
            "Measurements",
            command,
            root.toString()));
  }

  private static String git(final Path root, final String... arguments) throws Exception {
    final List<String> command = new ArrayList<>(List.of("git", "-C", root.toString()));
    command.addAll(List.of("-c", "user.name=test", "-c", "user.email=test@example.org"));
    command.addAll(List.of("-c", "commit.gpgSign=false", "-c", "core.hooksPath=/dev/null"));
    command.addAll(List.of(arguments));
    final Outcome outcome = run(command);
    assertThat(outcome.status()).as("%s: %s", command, outcome.text()).isZero();
    return outcome.text().strip();
  }

  private static void assumeGit() {
    assumeThat(
            Stream.of(System.getenv("PATH").split(":"))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, "git"))))
        .as("git is installed")
        .isTrue();
  }

  private static void assumeHistory() {
    assumeGit();
    assumeThat(REPOSITORY.resolve(".git")).as("the tree is a clone").exists();
  }

  /** Figures and pages of this repository, as they are and with other commits. */
  @Nested
  class ThisRepository {
    @Test
    void namesOnlyCommitsOfItsHistory() throws Exception {
      assumeHistory();
      final Outcome outcome = measurements("check", REPOSITORY);
      assertThat(outcome.status()).as(outcome.text()).isZero();
    }

    @Test
    void wouldNotPassWithAnotherCommitInAnyFile(@TempDir final Path copy) throws Exception {
      assumeHistory();
      final String gitFolder = git(REPOSITORY, "rev-parse", "--absolute-git-dir");
      Files.writeString(copy.resolve(".git"), "gitdir: " + gitFolder);
      final Path from = REPOSITORY.resolve("docs").resolve("measurements");
      final Path to = Files.createDirectories(copy.resolve("docs").resolve("measurements"));
      final List<String> names = new ArrayList<>();
      try (Stream<Path> files = Files.list(from)) {
        for (final Path file : files.toList()) {
          final String name = file.getFileName().toString();
          if (name.endsWith(".json")) {
            names.add(name);
            Files.writeString(
                to.resolve(name),
                Files.readString(file)
                    .replaceFirst("\"commit\": \"[0-9a-f]+\"", "\"commit\": \"" + UNKNOWN + "\""));
          } else if (name.endsWith(".txt")) {
            Files.copy(file, to.resolve(name));
          }
        }
      }
      final Outcome outcome = measurements("check", copy);
      assertThat(outcome.status()).as(outcome.text()).isOne();
      assertThat(names)
          .isNotEmpty()
          .allSatisfy(
              name ->
                  assertThat(outcome.text()).contains(name + " names " + UNKNOWN.substring(0, 12)));
    }
  }

  /** A repository with one file of figures, whose commit is in its history. */
  @Nested
  class SmallRepository {
    @TempDir private Path root;

    private Path folder;
    private String measured;

    private void create() throws Exception {
      assumeGit();
      folder = Files.createDirectories(root.resolve("docs").resolve("measurements"));
      Files.createDirectories(root.resolve("code"));
      git(root, "init", "--quiet");
      measured = commit("the code that is measured");
      Files.writeString(folder.resolve("paths.txt"), "set code code\ncode speed\n");
      write("speed", measured, "{\"seconds\": 1}");
      Files.writeString(root.resolve("docs").resolve("benchmarks.md"), table("speed"));
      commit("its figures");
    }

    private String commit(final String change) throws Exception {
      Files.writeString(root.resolve("code").resolve("changes"), change);
      git(root, "add", "--all");
      git(root, "commit", "--quiet", "--message", change);
      return git(root, "rev-parse", "HEAD");
    }

    private void write(final String name, final String commit, final String row)
        throws IOException {
      writeHead(name, "\"commit\": \"" + commit + "\"", row);
    }

    private void writeHead(final String name, final String head, final String row)
        throws IOException {
      Files.writeString(
          folder.resolve(name + ".json"),
          "{\"bench\": \"" + name + "\", " + head + ",\n \"rows\": [\n  " + row + "\n ]}\n");
    }

    private String table(final String name) {
      return String.format(
          Locale.ROOT,
          "<!-- %s:begin -->%ncommit %s%n<!-- %s:end -->%n",
          name,
          measured.substring(0, 12),
          name);
    }

    private void expectProblems(final String... beginnings) throws Exception {
      final Outcome outcome = measurements("check", root);
      assertThat(outcome.status()).as(outcome.text()).isOne();
      final List<String> found =
          outcome.text().lines().filter(line -> line.startsWith("ERROR: ")).sorted().toList();
      assertThat(found).hasSameSizeAs(beginnings);
      final List<String> expected = Stream.of(beginnings).sorted().toList();
      for (int i = 0; i < expected.size(); i++) {
        assertThat(found.get(i)).startsWith("ERROR: " + expected.get(i));
      }
    }

    @Test
    void figuresThatCannotBeTraced(@TempDir final Path clone) throws Exception {
      create();
      assertThat(measurements("check", root))
          .isEqualTo(new Outcome(0, "measurements: 1 files, 0 problems\n"));

      git(clone, "clone", "--quiet", "--depth", "1", "file://" + root, ".");
      final Outcome shallow = measurements("check", clone);
      assertThat(shallow.status()).isOne();
      assertThat(shallow.text()).contains("run git fetch --unshallow");

      final String before = commit("measured, then amended");
      git(root, "commit", "--quiet", "--amend", "--message", "another commit of the same tree");
      write("amended", before, "{}");
      write("absent", UNKNOWN, "{}");
      write("dirty", measured + "-dirty", "{}");
      write("row", measured, "{\"commit\": \"" + UNKNOWN + "\"}");
      write("rows", measured, "{\"commits\": [\"" + measured + "\", \"" + UNKNOWN + "\"]}");
      writeHead("none", "\"date\": \"today\"", "{}");
      writeHead("note", "\"commit\": \"" + measured + "\", \"setting\": \"it and 0123abc\"", "{}");
      Files.writeString(
          folder.resolve("paths.txt"),
          "set code code\ncode speed absent amended dirty row rows none note\n");
      Files.writeString(
          root.resolve("README.md"),
          "Twice as fast (commit 0123abc), by [figures](docs/measurements/speeds.json).");
      expectProblems(
          "amended.json names " + before.substring(0, 12) + ", which is no ancestor of HEAD",
          "absent.json names 0123456789ab, which is no ancestor of HEAD",
          "dirty.json is of \"" + measured + "-dirty\", which is no commit",
          "a row of row.json names 0123456789ab",
          "a row of rows.json names 0123456789ab",
          "none.json names no commit",
          "a note in note.json names 0123abc",
          "README.md names 0123abc",
          "README.md links to measurements/speeds.json: no such file");
    }

    @Test
    void tablesAndPathsThatAreOfOtherFiles() throws Exception {
      create();
      final String change = commit("another writer");
      write("again", change, "{}");
      write("unlisted", measured, "{}");
      Files.writeString(
          folder.resolve("paths.txt"),
          "set code code\nset old moved\nolder code "
              + change
              + " by the old writer\n"
              + "code speed again gone\n");
      Files.writeString(
          root.resolve("docs").resolve("benchmarks.md"),
          table("speed") + table("again") + table("lost"));
      expectProblems(
          "docs/benchmarks.md, table speed: lacks \"by the old writer\"",
          "docs/benchmarks.md, table again: of another run than its file",
          "docs/benchmarks.md has a table lost without a file",
          "docs/measurements/paths.txt does not say on what unlisted.json depends",
          "docs/measurements/paths.txt has gone, which is no file",
          "docs/measurements/paths.txt, set old: no moved");
    }

    @Test
    void figuresThatAreOlderThanTheirCode() throws Exception {
      create();
      assertThat(measurements("stale", root).text()).contains("behind by 1: code");
      write("speed", git(root, "rev-parse", "HEAD"), "{}");
      assertThat(measurements("stale", root).text()).contains("up to date");
      assertThat(measurements("summary", root).text())
          .startsWith("measurements: 0 of 1 are older than the last change");
      commit("a change");
      assertThat(measurements("summary", root).text())
          .startsWith("measurements: 1 of 1 are older than the last change");
    }

    @Test
    void aTreeWithoutAHistory() throws Exception {
      create();
      Files.move(root.resolve(".git"), root.resolve("no-git"));
      assertThat(measurements("check", root).text()).contains("there is no .git here");
      final Outcome summary = measurements("summary", root);
      assertThat(summary.status()).isZero();
      assertThat(summary.text()).startsWith("measurements: not compared with the code");
    }
  }
}
