package io.zerohop.spark.log;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.LogCode;
import io.zerohop.shuffle.log.ShuffleCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The codes of log lines and reasons, docs/runbook.md and the places that use them go together. */
class RunbookTest {
  private static final List<Class<? extends LogCode>> ENUMS =
      List.of(DeviceCode.class, ShuffleCode.class, SparkCode.class);

  private static final Path PAGE = Path.of("../docs/runbook.md");
  private static final Pattern CHAPTER = Pattern.compile("## (\\d) .*");
  private static final Pattern ANCHOR = Pattern.compile("<a id=\"([^\"]*)\"></a>(\\S*)");

  /** A call that writes a warning or an error without a code; it may be broken over lines. */
  private static final Pattern UNCODED =
      Pattern.compile(
          "(?i)\\blog(ger)?(\\(\\))?\\s*"
              + "(\\.\\s*(warn|error|atWarn|atError|atLevel)\\s*\\(|::\\s*(warn|error))"
              + "|\\bMessage\\s*\\.\\s*of\\([^;]*\\.(warn|error)\\(\\s*LOG");

  private static final String PARSES =
      "\\s*\\.\\s*(matches|indexOf|lastIndexOf|substring|split|contains|startsWith|endsWith|replace"
          + "|replaceAll|replaceFirst|regionMatches|lines)\\(";

  /** What gives a text that was made for people. */
  private static final String SAYS =
      "\\b(getMessage|getLocalizedMessage|text|happened|reasoned|what|why|remedy)\\(\\)";

  /** What such texts are called, and are parameters of. */
  private static final String NAMES = "\\b(message|reason|why|what|sentence|said|remedy|refusal)";

  /** Code that takes a sentence apart, to learn a code, a reason or a remedy from it. */
  private static final List<Pattern> PROSE_PARSERS =
      List.of(
          Pattern.compile(SAYS + PARSES),
          Pattern.compile(NAMES + PARSES),
          Pattern.compile("\\bmatcher\\(\\s*([\\w.]*" + SAYS + "|" + NAMES + "\\s*\\))"),
          Pattern.compile("[iI]ndexOf\\(\\s*\"[;:.] |\\bsplit\\(\\s*\"[;:.] "),
          Pattern.compile("\"[^\"\n]*ZH-"));

  /** A text made for people that gets a name, which group 1 is. */
  private static final Pattern NAMED = Pattern.compile("String (\\w+)\\s*=[^;]*" + SAYS + "\\s*;");

  /** Spark sends the print of an exception and nothing else: it reads what itself has written. */
  private static final String WIRE = "Refusal.java";

  @Test
  void eachNumberBelongsToOneCode() {
    final TreeMap<Integer, LogCode> byNumber = new TreeMap<>();
    for (final LogCode code : codes()) {
      assertThat(byNumber.put(code.number(), code)).as("also ZH-%s", code.number()).isNull();
      assertThat(code.number()).isBetween(1000, 6999);
    }
  }

  @Test
  void eachCodeIsUsedAtOnePlace() throws IOException {
    final List<Source> sources = sources();
    for (final LogCode code : codes()) {
      final String use = code.getClass().getSimpleName() + "." + ((Enum<?>) code).name();
      final Pattern pattern = Pattern.compile("\\b" + Pattern.quote(use) + "\\b");
      final List<Path> users = new ArrayList<>();
      for (final Source source : sources) {
        pattern.matcher(source.text).results().forEach(found -> users.add(source.file));
      }
      assertThat(users).as(use).hasSize(1);
    }
  }

  @Test
  void everyWarningAndErrorHasACode() throws IOException {
    assertThat(UNCODED.matcher("LOG\n    .warn(").find()).isTrue();
    assertThat(UNCODED.matcher("forEach(LOG::warn)").find()).isTrue();
    assertThat(UNCODED.matcher("Message.of(\"x\").at(\"y\").warn(LOG)").find()).isTrue();
    assertThat(UNCODED.matcher("ShuffleCode.UCX_DIED.says(\"x\").error(LOG, e)").find()).isFalse();
    for (final Source source : sources()) {
      final Matcher found = UNCODED.matcher(source.text);
      if (!source.file.endsWith("Message.java")) {
        assertThat(found.find())
            .as("%s logs without a code; add one to the module's enum and to %s", source, PAGE)
            .isFalse();
      }
    }
  }

  @Test
  void noSentenceIsTakenApart() throws IOException {
    for (final Source source : sources()) {
      if (!source.file.endsWith("LogCode.java") && !source.file.endsWith(WIRE)) {
        assertThat(proseParsers(source.text))
            .as("%s takes a text for people apart; use the fields of Message", source)
            .isEmpty();
      }
    }
  }

  @Test
  void whatTakesASentenceApartIsFound() {
    for (final String parser :
        List.of(
            "e.getMessage().lastIndexOf(c)",
            "said.text()\n    .split(x)",
            "Pattern.compile(\" \\\\[ZH-\\\\d+]$\")",
            "CODE.matcher(message)",
            "CODE.matcher(e.getMessage())",
            "message.substring(0, 3)",
            "text.lastIndexOf(\"; \")",
            "final String words = finding.why();\n use(words.indexOf(x))",
            "String words = e.getMessage();\n CODE.matcher(words)")) {
      assertThat(proseParsers(parser)).as(parser).isNotEmpty();
    }
    assertThat(proseParsers("path.substring(1); line.split(\":\", 3); e.getMessage()")).isEmpty();
  }

  private static List<String> proseParsers(final String text) {
    final List<String> found = new ArrayList<>();
    for (final Pattern parser : PROSE_PARSERS) {
      parser.matcher(text).results().forEach(one -> found.add(one.group()));
    }
    final Matcher named = NAMED.matcher(text);
    while (named.find()) {
      final String name = "\\b" + named.group(1);
      Pattern.compile(name + PARSES + "|\\bmatcher\\(\\s*" + name.substring(2) + "\\s*\\)")
          .matcher(text)
          .results()
          .forEach(one -> found.add(one.group()));
    }
    return found;
  }

  @Test
  void thePageHasOneEntryForEachCodeAndNoOther() throws IOException {
    final List<String> anchors = new ArrayList<>();
    char chapter = '0';
    for (final String line : Files.readAllLines(PAGE)) {
      final Matcher heading = CHAPTER.matcher(line);
      if (heading.matches()) {
        chapter = heading.group(1).charAt(0);
      }
      final Matcher anchor = ANCHOR.matcher(line);
      while (anchor.find()) {
        final String label = anchor.group(2);
        assertThat(anchor.group(1)).isEqualTo(label.toLowerCase(java.util.Locale.ROOT));
        assertThat(label.charAt(3)).as("chapter of %s", label).isEqualTo(chapter);
        // An empty first and last part, and meaning, cost and mend between them.
        final String[] cells = line.split("\\|", -1);
        assertThat(cells).as(label).hasSize(6);
        assertThat(List.of(cells).subList(2, 5)).as(label).noneMatch(String::isBlank);
        anchors.add(label);
      }
    }
    assertThat(anchors)
        .containsExactlyInAnyOrderElementsOf(codes().stream().map(LogCode::label).toList());
  }

  @Test
  void whatThePageRefersToIsThere() throws IOException {
    final String page = Files.readString(PAGE);
    final Matcher reference = Pattern.compile("ZH-\\d+").matcher(page);
    while (reference.find()) {
      assertThat(page).contains("</a>" + reference.group() + " |");
    }
  }

  private static List<LogCode> codes() {
    final List<LogCode> codes = new ArrayList<>();
    for (final Class<? extends LogCode> one : ENUMS) {
      codes.addAll(List.of(one.getEnumConstants()));
    }
    return codes;
  }

  /** The main sources of all modules, but for the enums. */
  private static List<Source> sources() throws IOException {
    final List<Source> sources = new ArrayList<>();
    for (final String module : List.of("../native", "../shuffle", "../plugin")) {
      try (Stream<Path> files = Files.walk(Path.of(module, "src/main"))) {
        for (final Path file : files.toList()) {
          final String name = file.getFileName().toString();
          final boolean code = name.endsWith(".java") || name.endsWith(".scala");
          if (code && ENUMS.stream().noneMatch(one -> name.equals(one.getSimpleName() + ".java"))) {
            sources.add(new Source(file, Files.readString(file)));
          }
        }
      }
    }
    assertThat(sources).hasSizeGreaterThan(200);
    return sources;
  }

  private record Source(Path file, String text) {
    @Override
    public String toString() {
      return file.toString();
    }
  }
}
