package io.zerohop.spark.rdmaproof;

import io.zerohop.spark.doctor.Report;
import io.zerohop.spark.doctor.Report.Json;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.ProofLine.Check;
import io.zerohop.spark.rdmaproof.ProofLine.Result;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * The result of a proof. Immutable.
 *
 * @param firstName name of a host
 * @param first what it has
 * @param secondName name of the other one
 * @param second what that has
 * @param kinds of memory that were asked for
 * @param findings in the order in which they came
 */
record ProofReport(
    String firstName,
    HostFacts first,
    String secondName,
    HostFacts second,
    Set<MemoryKind> kinds,
    List<ProofLine> findings) {
  /** Raised when a field changes its meaning. */
  static final int FORMAT = 1;

  private static final Set<Check> NEEDED =
      Set.of(Check.UCX, Check.REGISTER, Check.CONTENTS, Check.ONE_SIDED, Check.KILLED);
  private static final int DIRECTIONS = 2;

  /** Copies the lists. */
  ProofReport {
    kinds = Set.copyOf(kinds);
    findings = List.copyOf(findings);
  }

  /** The verdict on all that was requested, or on a part of it. */
  enum Verdict {
    /** Two hosts with adapters; all checks have passed. */
    PROVEN,
    /** Nothing contradicts it, and something is missing. */
    NOT_PROVEN,
    /** A check has failed that should not. */
    FAILED;

    String words() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  /** The verdict on a kind of memory, and why it is not proven. */
  record Judgement(Verdict verdict, List<String> why) {}

  /** Returns the judgement on one kind of memory. */
  Judgement of(final MemoryKind kind) {
    final List<String> missing = new ArrayList<>();
    final List<String> wrong = new ArrayList<>();
    // Without adapters UCX does what it should not need to: that is no failure of theirs.
    missing.addAll(failures(Check.HOSTS));
    missing.addAll(failures(Check.ADAPTER));
    final boolean excused = !missing.isEmpty();
    missing.addAll(failures(Check.CONNECTION));
    for (final ProofLine each : findings) {
      if (each.memory() == kind && each.result() != Result.PASSED) {
        final boolean follows =
            excused && (each.check() == Check.ONE_SIDED || each.check() == Check.GPUDIRECT);
        if (!follows) {
          (each.result() == Result.FAILED ? wrong : missing).add(reason(each));
        }
      }
    }
    for (final Check check : NEEDED) {
      final long seen =
          findings.stream().filter(it -> it.memory() == kind && it.check() == check).count();
      if (seen < DIRECTIONS && missing.isEmpty() && wrong.isEmpty()) {
        missing.add(check.key() + " was not tried in both directions");
      }
    }
    final Verdict verdict =
        !wrong.isEmpty() ? Verdict.FAILED : missing.isEmpty() ? Verdict.PROVEN : Verdict.NOT_PROVEN;
    wrong.addAll(missing);
    return new Judgement(verdict, wrong);
  }

  /** Why checks of the hosts have failed. */
  private List<String> failures(final Check check) {
    return findings.stream()
        .filter(it -> it.check() == check && it.result() == Result.FAILED)
        .map(ProofReport::reason)
        .toList();
  }

  private static String reason(final ProofLine finding) {
    final String what =
        switch (finding.check()) {
          case ADAPTER -> "no RDMA adapter at host " + finding.owner();
          case HOSTS -> "no two hosts";
          case CONNECTION -> "the connection was lost";
          case DRIVER -> "no GPU at host " + finding.owner();
          case JOB -> "job";
          default -> finding.check().key() + ", memory of host " + finding.owner();
        };
    return finding.why().isEmpty() ? what : what + ": " + finding.why();
  }

  /** Returns the judgement on all that was requested: the worst, and a failed job. */
  Judgement all() {
    Verdict worst = Verdict.PROVEN;
    final Set<String> reasons = new LinkedHashSet<>();
    for (final MemoryKind kind : MemoryKind.values()) {
      if (kinds.contains(kind)) {
        final Judgement one = of(kind);
        worst = one.verdict().compareTo(worst) > 0 ? one.verdict() : worst;
        reasons.addAll(one.why());
      }
    }
    for (final ProofLine each : findings) {
      if (each.check() == Check.JOB && each.result() == Result.FAILED) {
        final boolean right = each.value() > 0;
        final Verdict job = right ? Verdict.NOT_PROVEN : Verdict.FAILED;
        worst = job.compareTo(worst) > 0 ? job : worst;
        reasons.add(reason(each));
      }
    }
    return new Judgement(worst, List.copyOf(reasons));
  }

  /** What was not tried, and why. */
  private List<String> notDone() {
    return findings.stream()
        .filter(it -> it.result() == Result.SKIPPED)
        .map(ProofReport::reason)
        .distinct()
        .toList();
  }

  /** 0 proven, 1 not proven, 2 failed. */
  int exitStatus() {
    return all().verdict().ordinal();
  }

  /** A line for people. */
  static String line(final ProofLine finding) {
    final String value =
        Double.isNaN(finding.value())
            ? ""
            : String.format(Locale.ROOT, " %s %s", Json.number(finding.value()), finding.unit());
    return String.format(
        Locale.ROOT,
        "%-7s %-9s %-2s %s%s%s%s",
        finding.result().name().toLowerCase(Locale.ROOT),
        finding.check().key(),
        finding.owner(),
        finding.what(),
        finding.bytes() == 0 ? "" : ", " + finding.bytes() + " bytes",
        value.isEmpty() ? "" : ":" + value,
        finding.why().isEmpty() ? "" : " (" + finding.why() + ")");
  }

  /** The verdict for people. */
  String text() {
    final Judgement all = all();
    return all.verdict().words() + (all.why().isEmpty() ? "" : ": " + String.join("; ", all.why()));
  }

  /** For programs, and to be published; docs/rdma-proof.md says what it has. */
  String json() {
    final Judgement all = all();
    final Json json = new Json();
    json.object();
    json.name("tool").value("rdma-proof");
    json.name("format").value(FORMAT);
    json.name("zerohop").value(Report.version());
    json.name("date").value(LocalDate.now(ZoneOffset.UTC).toString());
    json.name("verdict").value(all.verdict().words());
    json.name("why").array();
    all.why().forEach(json::value);
    json.end().name("not_done").array();
    notDone().forEach(json::value);
    json.end().name("memory").object();
    for (final MemoryKind kind : MemoryKind.values()) {
      json.name(kind.key()).value(of(kind).verdict().words());
    }
    json.end().name("hosts").object();
    host(json, firstName, first);
    host(json, secondName, second);
    json.end().name("findings").array();
    findings.forEach(each -> write(json, each));
    return json.end().end().toString();
  }

  private static void host(final Json json, final String name, final HostFacts facts) {
    json.name(name).object();
    facts
        .all()
        .forEach(
            (fact, value) -> {
              if (!fact.equals(HostFacts.BOOT)) {
                json.name(fact).value(value);
              }
            });
    json.end();
  }

  private static void write(final Json json, final ProofLine finding) {
    json.object().name("check").value(finding.check().key());
    if (finding.memory() != null) {
      json.name("memory").value(finding.memory().key());
    }
    if (!finding.owner().isEmpty()) {
      json.name("owner").value(finding.owner());
    }
    json.name("what").value(finding.what());
    if (finding.bytes() > 0) {
      json.name("bytes").value(finding.bytes());
    }
    if (!Double.isNaN(finding.value())) {
      json.name("value").significant(finding.value());
      json.name("unit").value(finding.unit());
    }
    json.name("result").value(finding.result().name().toLowerCase(Locale.ROOT));
    json.name("why").value(finding.why()).end();
  }
}
