package io.zerohop.spark.doctor;

import static java.math.RoundingMode.HALF_UP;

import io.zerohop.device.Message;
import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.RateCheck.Rate;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine.IVersionProvider;

/** The doctor's report on one process or several. */
public record Report(List<Section> sections) {
  private static final String INDENT = " ".repeat(18);

  /** One process, which the title names. */
  public record Section(String title, List<Finding> findings, List<Rate> rates) {
    public static Section of(final String title, final Notes notes) {
      return new Section(title, notes.findings(), notes.rates());
    }
  }

  public Verdict verdict() {
    return sections.stream()
        .flatMap(section -> section.findings().stream())
        .map(Finding::verdict)
        .max(Verdict::compareTo)
        .orElse(Verdict.OK);
  }

  /** 0 if nothing is to be done, 1 after a warning, 2 after a failure. */
  public int exitStatus() {
    return switch (verdict()) {
      case OK, SKIP -> 0;
      case WARN -> 1;
      case FAIL -> 2;
    };
  }

  /** For people: a line for each finding, and one below it for what is to be done. */
  public String text() {
    final StringBuilder text = new StringBuilder();
    for (final Section section : sections) {
      text.append(section.title()).append('\n');
      for (final Finding finding : section.findings()) {
        text.append(
            String.format(
                Locale.ROOT,
                "%-4s %-12s %s%n",
                finding.verdict().key(),
                finding.item().key(),
                finding.message().remedy("").text()));
        if (!finding.message().remedy().isEmpty()) {
          text.append(INDENT).append("-> ").append(finding.message().remedy()).append('\n');
        }
      }
      if (!section.rates().isEmpty()) {
        text.append(
            String.format(
                Locale.ROOT,
                "     %-9s %-14s %-14s %9s %9s%n",
                "path",
                "from",
                "to",
                "GB/s",
                "expected"));
        section.rates().forEach(rate -> text.append("     ").append(rate).append('\n'));
      }
    }
    final List<Verdict> verdicts = new ArrayList<>();
    sections.forEach(it -> it.findings().forEach(finding -> verdicts.add(finding.verdict())));
    return text.append(
            String.format(
                Locale.ROOT,
                "%d ok, %d skipped, %d to look at, %d failed%n",
                count(verdicts, Verdict.OK),
                count(verdicts, Verdict.SKIP),
                count(verdicts, Verdict.WARN),
                count(verdicts, Verdict.FAIL)))
        .toString();
  }

  private static long count(final List<Verdict> all, final Verdict one) {
    return all.stream().filter(one::equals).count();
  }

  /** For programs; docs/doctor.md says what it has. */
  public String json() {
    return Json.text(
        Json.object(
            "version", version(),
            "verdict", verdict().key(),
            "processes", sections.stream().map(Report::process).toList()));
  }

  private static Map<String, Object> process(final Section section) {
    return Json.object(
        "process", section.title(),
        "findings", section.findings().stream().map(Report::finding).toList(),
        "rates", section.rates().stream().map(Report::rate).toList());
  }

  private static Map<String, Object> finding(final Finding finding) {
    final Message message = finding.message();
    return Json.object(
        "check", finding.item().key(),
        "verdict", finding.verdict().key(),
        "code", message.code(),
        "what", message.reasoned(),
        "where", message.where(),
        "remedy", message.remedy(),
        "mend", message.remedy()); // As programs of 0.2.0 read it.
  }

  /** With one decimal, since what is measured is not known better. */
  private static Map<String, Object> rate(final Rate rate) {
    return Json.object(
        "path", rate.path(),
        "from", rate.from(),
        "to", rate.to(),
        "gigabytesPerSecond", BigDecimal.valueOf(rate.gigabytes()).setScale(1, HALF_UP),
        "expected", BigDecimal.valueOf(rate.expected()).setScale(1, HALF_UP));
  }

  /** The release of this jar; {@code unknown} for classes that are in none. */
  public static String version() {
    final String version = JarVersion.own();
    return version.isEmpty() ? "unknown" : version;
  }

  /** The release of the jar, for its commands. */
  public static final class ReleaseVersion implements IVersionProvider {
    @Override
    public String[] getVersion() {
      return new String[] {"Zerohop " + Report.version()};
    }
  }

  /**
   * JSON of maps, lists, numbers and texts. The jar has to run without Spark, and so without a
   * library for it.
   */
  public static final class Json {
    private static final int DIGITS = 4;

    private Json() {}

    /** An object of names, each with its value behind it, in this order. */
    public static Map<String, Object> object(final Object... namesAndValues) {
      final Map<String, Object> object = new LinkedHashMap<>();
      for (int i = 0; i < namesAndValues.length; i += 2) {
        object.put((String) namesAndValues[i], namesAndValues[i + 1]);
      }
      return object;
    }

    /** Four digits that count: as many as a measurement has. */
    public static BigDecimal significant(final double value) {
      return BigDecimal.valueOf(value).round(new MathContext(DIGITS)).stripTrailingZeros();
    }

    public static String text(final Object value) {
      if (value instanceof Map<?, ?> object) {
        return object.entrySet().stream()
            .map(entry -> text(entry.getKey()) + ":" + text(entry.getValue()))
            .collect(Collectors.joining(",", "{", "}"));
      }
      if (value instanceof List<?> array) {
        return array.stream().map(Json::text).collect(Collectors.joining(",", "[", "]"));
      }
      if (value instanceof BigDecimal number) {
        return number.toPlainString(); // Without an exponent.
      }
      return value instanceof Number ? value.toString() : quoted(value.toString());
    }

    private static String quoted(final String text) {
      final StringBuilder quoted = new StringBuilder("\"");
      for (final char c : text.toCharArray()) {
        if (c == '"' || c == '\\') {
          quoted.append('\\').append(c);
        } else if (c < ' ') {
          quoted.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
        } else {
          quoted.append(c);
        }
      }
      return quoted.append('"').toString();
    }
  }
}
