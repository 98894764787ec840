import java.io.IOException;
import java.lang.module.ModuleDescriptor.Version;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Writes a release's notes from CHANGELOG.md, and fails if that is not in order: {@code java
 * integration-tests/checks/ReleaseNotes.java CHANGELOG VERSION HOME [FILE]}, where HOME is the
 * project's address; without FILE it only checks.
 *
 * <p>The changelog begins with <i>Unreleased</i>; versions fall, and each has its date and the
 * headings of Keep a Changelog, none of them empty. A release has its own section, and nothing is
 * left under <i>Unreleased</i>; a snapshot's notes are what is there. Links are to the files of the
 * release's tag, since notes are read elsewhere than in the tree.
 */
public final class ReleaseNotes {
  private static final String UNRELEASED = "Unreleased";
  private static final String SNAPSHOT = "-SNAPSHOT";
  private static final Set<String> HEADINGS =
      Set.of("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security");
  private static final Pattern TITLE = Pattern.compile("## \\[([^\\]]+)](?: - (.+))?");
  private static final Pattern LINK = Pattern.compile("]\\((?!https?:|#)([^)\\s]+)\\)");

  private final List<Section> sections = new ArrayList<>();
  private final List<String> problems = new ArrayList<>();

  /** A version's part of the changelog; {@code when} is null for what is not released. */
  private record Section(String version, String when, List<String> lines) {
    private boolean isEmpty() {
      return lines.stream().allMatch(String::isBlank);
    }
  }

  public static void main(final String... args) throws IOException {
    final String version = args[1];
    final ReleaseNotes notes = new ReleaseNotes();
    notes.read(Path.of(args[0]));
    notes.checkOrder();
    notes.sections.forEach(notes::checkHeadings);
    final Section section = notes.sectionOf(version);
    if (!notes.problems.isEmpty()) {
      notes.problems.forEach(problem -> System.err.println("ERROR: " + args[0] + ": " + problem));
      System.exit(1);
    }
    if (args.length > 3) {
      Files.writeString(Path.of(args[3]), text(section, version, args[2]));
    }
    System.out.println("release notes: " + args[0] + " is in order for " + version);
  }

  private void read(final Path changelog) throws IOException {
    for (final String line : Files.readAllLines(changelog)) {
      final Matcher title = TITLE.matcher(line);
      if (title.matches()) {
        sections.add(new Section(title.group(1), title.group(2), new ArrayList<>()));
      } else if (line.startsWith("## ")) {
        problems.add("this is no title of a version: " + line);
      } else if (!sections.isEmpty()) {
        sections.get(sections.size() - 1).lines().add(line);
      }
    }
  }

  private void checkOrder() {
    if (sections.isEmpty() || !sections.get(0).version().equals(UNRELEASED)) {
      problems.add("the first section is not [" + UNRELEASED + "]");
      return;
    }
    Version above = null;
    LocalDate later = LocalDate.MAX;
    for (final Section section : sections.subList(1, sections.size())) {
      final Version version = number(section.version());
      if (version != null && above != null && version.compareTo(above) >= 0) {
        problems.add(section.version() + " does not belong below " + above);
      }
      above = version == null ? above : version;
      final LocalDate date = date(section);
      if (date != null && date.isAfter(later)) {
        problems.add(section.version() + " has a later date than the version above it");
      }
      later = date == null ? later : date;
    }
  }

  private Version number(final String version) {
    if (version.matches("\\d+\\.\\d+\\.\\d+")) {
      return Version.parse(version);
    }
    problems.add(version + " is no version");
    return null;
  }

  /** A version that never came out says so in place of its date. */
  private LocalDate date(final Section section) {
    if ("not published".equals(section.when())) {
      return null;
    }
    try {
      return LocalDate.parse(String.valueOf(section.when()));
    } catch (final DateTimeParseException e) {
      problems.add(section.version() + " has no date such as 2026-11-24, but " + section.when());
      return null;
    }
  }

  private void checkHeadings(final Section section) {
    final Map<String, Integer> entries = new TreeMap<>();
    final Set<String> seen = new HashSet<>();
    String heading = "";
    for (final String line : section.lines()) {
      if (line.startsWith("### ")) {
        heading = line.substring(4);
        if (!HEADINGS.contains(heading) || !seen.add(heading)) {
          problems.add(section.version() + ": unknown, or there twice: " + line);
        }
        entries.putIfAbsent(heading, 0);
      } else if (line.startsWith("- ")) {
        if (heading.isEmpty()) {
          problems.add(section.version() + ": this is under no heading: " + line);
        }
        entries.merge(heading, 1, Integer::sum);
      }
    }
    entries.forEach(
        (name, count) -> {
          if (count == 0) {
            problems.add(section.version() + ": nothing is under " + name);
          }
        });
  }

  private Section sectionOf(final String version) {
    final String wanted = version.endsWith(SNAPSHOT) ? UNRELEASED : version;
    final Section section =
        sections.stream().filter(one -> one.version().equals(wanted)).findFirst().orElse(null);
    if (section == null || section.isEmpty()) {
      problems.add("nothing is under [" + wanted + "], of which the notes of " + version + " are");
    } else if (!wanted.equals(UNRELEASED) && !sections.get(0).isEmpty()) {
      problems.add("what is under [" + UNRELEASED + "] is in " + version + " and belongs there");
    } else if (!wanted.equals(UNRELEASED) && !sections.get(1).equals(section)) {
      problems.add(version + " is older than " + sections.get(1).version());
    }
    return section;
  }

  private static String text(final Section section, final String version, final String home) {
    final String tree =
        home + "/blob/" + (version.endsWith(SNAPSHOT) ? "main" : "v" + version) + "/";
    final String changes =
        LINK.matcher(String.join("\n", section.lines()).strip())
            .replaceAll(link -> Matcher.quoteReplacement("](" + tree + link.group(1) + ")"));
    final String when = section.when() == null ? "" : " (" + section.when() + ")";
    return String.join(
        "\n\n",
        "# Zerohop " + version + when,
        "Driver and executors need this same release: [how to upgrade and roll back](" + tree
            + "docs/upgrade.md). Supported versions: [compatibility](" + tree
            + "docs/compatibility.md). Check what you download by `sha512sum -c *.sha512`, and by"
            + " [KEYS](" + home + "/blob/main/KEYS) if it is signed.",
        changes,
        "");
  }
}
