package io.zerohop.spark.docs;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.docs.CheckRunner.Outcome;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs integration-tests/checks/ReleaseNotes.java on this repository's changelog and on small ones.
 */
class ReleaseNotesTest {
  private static final String HOME = "https://example.org/zerohop";
  private static final String ENTRY =
      "\n### Fixed\n\n- It [works](docs/a.md#b), as [they](https://c.d) say.\n";
  private static final String WHOLE =
      "# Changelog\n\n## [Unreleased]\n\n## [1.10.0] - 2026-11-24\n"
          + ENTRY
          + "\n## [1.9.0] - 2026-11-23\n"
          + ENTRY
          + "\n## [1.0.0] - not published\n"
          + ENTRY;

  @TempDir private static Path classes;
  private static CheckRunner checks;
  @TempDir private Path folder;

  @BeforeAll
  static void compile() {
    checks = new CheckRunner(classes, "ReleaseNotes");
  }

  @Test
  void thisRepositorysChangelogIsInOrder() throws Exception {
    final Matcher version =
        Pattern.compile("<artifactId>zerohop</artifactId>\\s*<version>([^<]+)<")
            .matcher(Files.readString(CheckRunner.REPOSITORY.resolve("pom.xml")));
    assertThat(version.find()).isTrue();
    final String changelog = CheckRunner.REPOSITORY.resolve("CHANGELOG.md").toString();
    final Outcome outcome =
        checks.java(Map.of(), "ReleaseNotes", changelog, version.group(1), HOME);
    assertThat(outcome.status()).as(outcome.text()).isZero();
  }

  @Test
  void notesAreTheSectionOfTheReleaseWithLinksToItsTag() throws Exception {
    final Path notes = folder.resolve("notes.md");
    final Outcome outcome = notes(WHOLE, "1.10.0", notes);
    assertThat(outcome.status()).as(outcome.text()).isZero();
    assertThat(Files.readString(notes))
        .startsWith("# Zerohop 1.10.0 (2026-11-24)\n")
        .endsWith(
            "### Fixed\n\n- It [works]("
                + HOME
                + "/blob/v1.10.0/docs/a.md#b), as [they](https://c.d) say.\n\n");
  }

  @Test
  void aSnapshotsNotesAreWhatIsUnreleased() throws Exception {
    final Path notes = folder.resolve("notes.md");
    final String changelog = WHOLE.replace("[Unreleased]\n", "[Unreleased]\n" + ENTRY);
    assertThat(notes(changelog, "1.11.0-SNAPSHOT", notes).status()).isZero();
    assertThat(Files.readString(notes))
        .startsWith("# Zerohop 1.11.0-SNAPSHOT\n")
        .contains(HOME + "/blob/main/docs/a.md#b");
    assertRefused(WHOLE, "1.11.0-SNAPSHOT", "nothing is under [Unreleased]");
    assertRefused(changelog, "1.10.0", "is in 1.10.0 and belongs there");
  }

  @Test
  void aReleaseWithoutItsSectionIsRefused() throws Exception {
    assertRefused(WHOLE, "1.11.0", "nothing is under [1.11.0]");
    assertRefused(WHOLE, "1.9.0", "1.9.0 is older than 1.10.0");
    assertRefused(WHOLE.replaceFirst("(?s)### Fixed.*?say.\n", ""), "1.10.0", "nothing is under");
  }

  @Test
  void aChangelogThatIsNotInOrderIsRefused() throws Exception {
    assertRefused(WHOLE.replace("[1.9.0]", "[1.11.0]"), "1.10.0", "does not belong below 1.10.0");
    assertRefused(WHOLE.replace("-23", "-25"), "1.10.0", "1.9.0 has a later date");
    assertRefused(WHOLE.replace("-24", "-31"), "1.10.0", "1.10.0 has no date");
    assertRefused(WHOLE.replace("### Fixed", "### Mended"), "1.10.0", "unknown, or there twice");
    assertRefused(WHOLE.replace("- It", "It"), "1.10.0", "nothing is under Fixed");
    assertRefused(WHOLE.replace("## [Unreleased]", ""), "1.10.0", "is not [Unreleased]");
    assertRefused(WHOLE.replace("## [1.9.0]", "## 1.9.0"), "1.10.0", "no title of a version");
  }

  private void assertRefused(final String changelog, final String version, final String why)
      throws Exception {
    final Path notes = folder.resolve("refused.md");
    final Outcome outcome = notes(changelog, version, notes);
    assertThat(outcome.status()).as(outcome.text()).isNotZero();
    assertThat(outcome.text()).contains(why);
    assertThat(notes).doesNotExist();
  }

  private Outcome notes(final String changelog, final String version, final Path out)
      throws Exception {
    final Path file = Files.writeString(folder.resolve("CHANGELOG.md"), changelog);
    return checks.java(Map.of(), "ReleaseNotes", file.toString(), version, HOME, out.toString());
  }
}
