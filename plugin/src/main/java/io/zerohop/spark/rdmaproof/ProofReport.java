package io.zerohop.spark.rdmaproof;

import io.zerohop.spark.doctor.Report;
import io.zerohop.spark.doctor.Report.Json;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.ProofLine.Check;
import io.zerohop.spark.rdmaproof.ProofLine.Result;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The result of a proof. Immutable.
 *
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

  static String line(final ProofLine finding) {
    final String value =
        Double.isNaN(finding.value())
            ? ""
            : " " + Json.significant(finding.value()).toPlainString() + " " + finding.unit();
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

  String text() {
    final Judgement all = all();
    return all.verdict().words() + (all.why().isEmpty() ? "" : ": " + String.join("; ", all.why()));
  }

  /** For programs, and to be published; docs/rdma-proof.md says what it has. */
  String json() {
    final Judgement all = all();
    final Map<String, Object> memory = new LinkedHashMap<>();
    for (final MemoryKind kind : MemoryKind.values()) {
      memory.put(kind.key(), of(kind).verdict().words());
    }
    return Json.text(
        Json.object(
            "tool", "rdma-proof",
            "format", FORMAT,
            "zerohop", Report.version(),
            "date", LocalDate.now(ZoneOffset.UTC),
            "verdict", all.verdict().words(),
            "why", all.why(),
            "not_done", notDone(),
            "memory", memory,
            "hosts", Json.object(firstName, published(first), secondName, published(second)),
            "findings", findings.stream().map(ProofReport::published).toList()));
  }

  private static Map<String, String> published(final HostFacts facts) {
    final Map<String, String> known = new LinkedHashMap<>(facts.all());
    known.remove(HostFacts.BOOT);
    return known;
  }

  private static Map<String, Object> published(final ProofLine finding) {
    final Map<String, Object> line = Json.object("check", finding.check().key());
    if (finding.memory() != null) {
      line.put("memory", finding.memory().key());
    }
    if (!finding.owner().isEmpty()) {
      line.put("owner", finding.owner());
    }
    line.put("what", finding.what());
    if (finding.bytes() > 0) {
      line.put("bytes", finding.bytes());
    }
    if (!Double.isNaN(finding.value())) {
      line.put("value", Json.significant(finding.value()));
      line.put("unit", finding.unit());
    }
    line.put("result", finding.result().name().toLowerCase(Locale.ROOT));
    line.put("why", finding.why());
    return line;
  }
}
