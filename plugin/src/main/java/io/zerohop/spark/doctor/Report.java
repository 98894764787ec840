package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.RateCheck.Rate;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.IVersionProvider;

/** The doctor's report on one process or several. Immutable. */
public final class Report {
  private static final String INDENT = " ".repeat(18);

  private final List<Section> sections;

  /**
   * One process.
   *
   * @param title names it
   */
  public record Section(String title, List<Finding> findings, List<Rate> rates) {
    /** Returns the section of a process. */
    public static Section of(final String title, final Notes notes) {
      return new Section(title, notes.findings(), notes.rates());
    }
  }

  /** Copies the list. */
  public Report(final List<Section> sections) {
    this.sections = List.copyOf(sections);
  }

  /** The worst verdict of all. */
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
    final Json json = new Json();
    json.object();
    json.name("version").value(version());
    json.name("verdict").value(verdict().key());
    json.name("processes").array();
    for (final Section section : sections) {
      json.object().name("process").value(section.title());
      json.name("findings").array();
      for (final Finding finding : section.findings()) {
        json.object();
        json.name("check").value(finding.item().key());
        json.name("verdict").value(finding.verdict().key());
        final Message message = finding.message();
        json.name("code").value(message.code());
        json.name("what").value(message.reasoned());
        json.name("where").value(message.where());
        json.name("remedy").value(message.remedy());
        json.name("mend").value(message.remedy()).end(); // As programs of 0.2.0 read it.
      }
      json.end().name("rates").array();
      for (final Rate rate : section.rates()) {
        json.object();
        json.name("path").value(rate.path());
        json.name("from").value(rate.from());
        json.name("to").value(rate.to());
        json.name("gigabytesPerSecond").value(rate.gigabytes());
        json.name("expected").value(rate.expected()).end();
      }
      json.end().end();
    }
    return json.end().end().toString();
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
   * Writes JSON text. The jar has to run without Spark, and so without a library for it. Not thread
   * safe.
   */
  public static final class Json {
    private static final int FIRST_PRINTABLE = 0x20;
    private static final int DIGITS = 4;

    private final StringBuilder text = new StringBuilder();

    /** What ends each open object or array, the innermost first. */
    private final Deque<Character> ends = new ArrayDeque<>();

    /** Begins an object. */
    public Json object() {
      return open('{', '}');
    }

    /** Begins an array. */
    public Json array() {
      return open('[', ']');
    }

    private Json open(final char begin, final char end) {
      separate();
      text.append(begin);
      ends.push(end);
      return this;
    }

    /** Ends the innermost object or array. */
    public Json end() {
      text.append(ends.pop());
      return this;
    }

    /** The name of the value that follows. */
    public Json name(final String name) {
      separate();
      quote(name);
      text.append(':');
      return this;
    }

    /** A text. */
    public Json value(final String value) {
      separate();
      quote(value);
      return this;
    }

    /** With one decimal, since what is measured is not known better. */
    public Json value(final double value) {
      separate();
      text.append(String.format(Locale.ROOT, "%.1f", value));
      return this;
    }

    /** A whole number. */
    public Json value(final long value) {
      separate();
      text.append(value);
      return this;
    }

    /** With as many digits as a measurement has. */
    public Json significant(final double value) {
      separate();
      text.append(number(value));
      return this;
    }

    /** Four digits that count, and no exponent. */
    public static String number(final double value) {
      return BigDecimal.valueOf(value)
          .round(new MathContext(DIGITS))
          .stripTrailingZeros()
          .toPlainString();
    }

    private void separate() {
      final char last = text.length() == 0 ? '[' : text.charAt(text.length() - 1);
      if (last != '{' && last != '[' && last != ':') {
        text.append(',');
      }
    }

    private void quote(final String value) {
      text.append('"');
      for (final char c : value.toCharArray()) {
        if (c == '"' || c == '\\') {
          text.append('\\').append(c);
        } else if (c < FIRST_PRINTABLE) {
          text.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
        } else {
          text.append(c);
        }
      }
      text.append('"');
    }

    @Override
    public String toString() {
      return text.toString();
    }
  }
}
