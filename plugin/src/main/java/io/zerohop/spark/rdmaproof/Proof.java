package io.zerohop.spark.rdmaproof;

import io.zerohop.device.posix.Clock;
import io.zerohop.spark.rdmaproof.ProofLine.Check;
import io.zerohop.spark.rdmaproof.ProofLine.Result;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The complete proof of two hosts: each kind of memory, in both directions. They read it by the
 * product's own UCX code, while owners are stopped and killed. For one thread.
 */
final class Proof {
  private final Side first;
  private final Side second;
  private final Set<MemoryKind> kinds;
  private final Trial.Extent extent;
  private final Clock clock;
  private final PrintWriter log;
  private final List<ProofLine> findings = new ArrayList<>();

  Proof(
      final Side first,
      final Side second,
      final Set<MemoryKind> kinds,
      final Trial.Extent extent,
      final Clock clock,
      final PrintWriter log) {
    this.first = first;
    this.second = second;
    this.kinds = kinds;
    this.extent = extent;
    this.clock = clock;
    this.log = log;
  }

  /**
   * Tries all of it, with a job of Spark's at the end if one is wanted. Should the other side be
   * lost, the report says so, and has what was seen.
   */
  ProofReport run(final @Nullable SparkJob job) {
    final HostFacts one = first.facts();
    final HostFacts other = second.facts();
    try {
      hosts(one, other);
      final boolean adapters = one.hasAny() && other.hasAny();
      for (final MemoryKind kind : MemoryKind.values()) {
        final boolean there = kind != MemoryKind.GPU || gpus(one, other);
        if (there && kinds.contains(kind)) {
          trial(first, second, kind, adapters);
          trial(second, first, kind, adapters);
        }
      }
      note(
          job == null
              ? Check.JOB.found("a job of Spark's", Result.SKIPPED, "no --spark and --master given")
              : job.run());
    } catch (final Side.LostException e) {
      final String why = String.valueOf(e.getMessage());
      note(Check.CONNECTION.found("the hosts stay", Result.FAILED, why));
    }
    return new ProofReport(first.name(), one, second.name(), other, kinds, findings);
  }

  private void trial(
      final Side owner, final Side reader, final MemoryKind kind, final boolean adapters) {
    log.printf(
        Locale.ROOT,
        "%s memory of host %s, read by host %s%n",
        kind.key(),
        owner.name(),
        reader.name());
    new Trial(owner, reader, kind, extent, adapters, clock, this::note).run();
  }

  private void note(final ProofLine finding) {
    findings.add(finding);
    log.println(ProofReport.line(finding));
    log.flush();
  }

  private void hosts(final HostFacts one, final HostFacts other) {
    final boolean two = one.isOtherHost(other);
    note(
        Check.HOSTS.found(
            "the hosts are two", Result.of(two), two ? "" : "both ends run on one kernel"));
    adapter(first.name(), one);
    adapter(second.name(), other);
  }

  private void adapter(final String host, final HostFacts facts) {
    note(
        Check.ADAPTER.found(
            null,
            host,
            "there is an RDMA adapter",
            Result.of(facts.hasHardware()),
            facts.hasHardware()
                ? facts.hardware()
                : facts.hasSoftware()
                    ? "only one made by software: " + facts.all().get(HostFacts.SOFTWARE)
                    : "/sys/class/infiniband is empty: UCX goes over TCP"));
  }

  /** Returns whether GPU memory can be tried. */
  private boolean gpus(final HostFacts one, final HostFacts other) {
    final boolean here = gpu(first.name(), one);
    final boolean there = gpu(second.name(), other);
    if (!here || !there) {
      return false;
    }
    direct(first.name(), one);
    direct(second.name(), other);
    return true;
  }

  private boolean gpu(final String host, final HostFacts facts) {
    final String absence = facts.gpuAbsence();
    final boolean there = absence == null;
    note(
        Check.DRIVER.found(
            MemoryKind.GPU,
            host,
            "there is a GPU",
            there ? Result.PASSED : Result.SKIPPED,
            absence == null ? facts.all().getOrDefault("gpu", "") : absence));
    return there;
  }

  private void direct(final String host, final HostFacts facts) {
    final boolean peermem = facts.says(HostFacts.PEERMEM);
    final boolean dmaBuf = facts.says(HostFacts.DMA_BUF);
    note(
        Check.GPUDIRECT.found(
            MemoryKind.GPU,
            host,
            "an adapter may reach the GPU's memory",
            Result.of(peermem || dmaBuf),
            peermem || dmaBuf
                ? (peermem ? "nvidia-peermem" : "")
                    + (peermem && dmaBuf ? ", " : "")
                    + (dmaBuf ? "dma-buf" : "")
                : "neither nvidia-peermem (modprobe nvidia-peermem) nor dma-buf (NVIDIA's open"
                    + " kernel module, Linux 5.12 or later)"));
  }

  /** The kinds of memory at both ends of a proof. */
  enum MemoryKind {
    /** Shared memory of the host, as executors keep rows in. */
    HOST,
    /** GPU memory, as executors keep RAPIDS' batches in. */
    GPU;

    /** Its name in reports and questions. */
    String key() {
      return name().toLowerCase(Locale.ROOT);
    }

    static MemoryKind of(final String key) {
      return valueOf(key.toUpperCase(Locale.ROOT));
    }
  }

  /** Thrown if a step of the proof could not be done; the message has the cause and the remedy. */
  static final class ProofException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    ProofException(final String message) {
      super(message);
    }

    ProofException(final String message, final Throwable cause) {
      super(message, cause);
    }
  }
}
