package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.RateCheck.Rate;
import java.util.ArrayList;
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
}
