package io.zerohop.spark.rdmaproof;

import io.zerohop.device.posix.Clock;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import io.zerohop.spark.rdmaproof.ProofLine.Check;
import io.zerohop.spark.rdmaproof.ProofLine.Result;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * One kind of memory of one host that the other host reads. Each step is a finding; one that fails
 * leaves out those that need it. Used by one thread.
 */
final class Trial {
  /** What UCX does in different ways, as at first contact, and what crosses pages of a GPU's. */
  static final long[] SIZES = {1, 64, 900, 4 << 10, 1 << 20, 16 << 20};

  /** Where gets of an owner's memory begin: not only at even addresses. */
  private static final long[] PLACES = {0, 13};

  private static final long MIN_BYTES = 1 << 20;
  private static final int RATE_STEP = 8;
  private static final int DEPTH = 16;
  private static final long DEPTH_BYTES = 1 << 20;
  private static final long KILL_BYTES = 16 << 20;
  private static final int KILL_GETS = 256;
  private static final int MAX_PAUSE_MS = 20;
  private static final long GET_MILLIS = 60_000;

  /** A get that is one-sided takes no longer because its owner is stopped. */
  private static final long STOPPED_MILLIS = 10_000;

  /** Without an adapter it does not end, which needs no patience. */
  private static final long EMULATED_MILLIS = 2_000;

  /** The product's limit, after which memory would stay held: spark.zerohop.request.timeout. */
  private static final long KILLED_MILLIS = 10_000;

  private static final Duration SHORT = Duration.ofSeconds(20);
  private static final Duration LONG = Duration.ofSeconds(150);

  private final Side owner;
  private final Side reader;
  private final MemoryKind kind;
  private final Extent extent;
  private final boolean adapters;
  private final Clock clock;
  private final Consumer<ProofLine> findings;

  // From the start on.
  private Side.@Nullable Worker reading;
  private Side.@Nullable Worker owning;

  /** From when a segment is registered. */
  private @Nullable Target target;

  private long bytes;

  /** How long the gets of the last owner that was killed have taken to end. */
  private double lastMillis;

  /**
   * The extent of a proof.
   *
   * @param bytes of the segments, and of the largest get
   * @param kills owners that are killed, of each memory and in each direction
   * @param rateMillis for which gets of one size are timed, three at least
   */
  record Extent(long bytes, int kills, long rateMillis) {}

  /** The target of a read: its key, its address, and the seed of its bytes. */
  private record Target(String key, long address, long seed, double registeredMillis) {}

  /** A step, which finds something or fails. */
  private interface Step {
    ProofLine run();
  }

  /**
   * @param adapters whether both have one, so that gets have to be one-sided
   * @param findings gets each as soon as it is there
   */
  Trial(
      final Side owner,
      final Side reader,
      final MemoryKind kind,
      final Extent extent,
      final boolean adapters,
      final Clock clock,
      final Consumer<ProofLine> findings) {
    this.owner = owner;
    this.reader = reader;
    this.kind = kind;
    this.extent = extent;
    this.adapters = adapters;
    this.clock = clock;
    this.findings = findings;
  }

  /**
   * Runs all steps; nothing of it is left.
   *
   * @throws Side.LostException if the hosts have lost each other
   */
  void run() {
    try {
      final boolean usable =
          step(Check.UCX, "UCX starts at both, as in executors", this::start)
              && step(Check.REGISTER, "a segment is registered", this::register)
              && step(Check.CONTENTS, "gets bring the right bytes", this::contents);
      if (usable) {
        step(Check.ONE_SIDED, "gets while the owner is stopped", this::oneSided);
        rates();
        step(Check.KILLED, "owners are killed under gets", this::killed);
      } else {
        skip(Check.ONE_SIDED, "gets while the owner is stopped");
        skip(Check.KILLED, "owners are killed under gets");
      }
    } finally {
      try {
        close(reading);
      } finally {
        close(owning);
      }
    }
  }

  private Side.Worker reading() {
    return Objects.requireNonNull(reading, "a worker that reads");
  }

  private Side.Worker owning() {
    return Objects.requireNonNull(owning, "a worker that owns");
  }

  private Target target() {
    return Objects.requireNonNull(target, "a registered segment");
  }

  private static void close(final Side.@Nullable Worker worker) {
    if (worker != null) {
      worker.close();
    }
  }

  private boolean step(final Check check, final String what, final Step step) {
    ProofLine finding;
    try {
      finding = step.run();
    } catch (final Side.LostException e) {
      throw e;
    } catch (final RuntimeException e) { // Also what a worker says that makes no sense.
      finding = finding(check, what, Result.FAILED, reason(e));
    }
    findings.accept(finding);
    return finding.result() == Result.PASSED;
  }

  private static String reason(final RuntimeException cause) {
    final String message = cause.getMessage();
    return cause instanceof ProofException && message != null ? message : cause.toString();
  }

  private void skip(final Check check, final String what) {
    findings.accept(finding(check, what, Result.SKIPPED, "what it needs has failed"));
  }

  private ProofLine finding(
      final Check check, final String what, final Result result, final String why) {
    return check.found(kind, owner.name(), what, result, why);
  }

  private ProofLine start() {
    reading = reader.start(kind);
    owning = owner.start(kind);
    return finding(
        Check.UCX,
        "UCX starts at both, as in executors",
        Result.PASSED,
        "owner: " + about(owning()).get(1) + "; reader: " + about(reading()).get(1));
  }

  /** As much as both can have: half of it as often as it is refused. */
  private ProofLine register() {
    String refusal = "";
    for (bytes = extent.bytes(); ; bytes /= 2) {
      try {
        target = memory(owning());
        memory(reading());
        break;
      } catch (final ProofException e) {
        if (bytes / 2 < MIN_BYTES) {
          throw e;
        }
        refusal = bytes + " bytes were refused: " + e.getMessage();
        owning().close();
        reading().close();
        reading = reader.start(kind);
        owning = owner.start(kind);
      }
    }
    connect();
    return finding(Check.REGISTER, "a segment is registered at the owner", Result.PASSED, refusal)
        .measured(bytes, target().registeredMillis(), "ms");
  }

  private Target memory(final Side.Worker worker) {
    final long seed = ThreadLocalRandom.current().nextLong();
    final List<String> answer =
        worker.ask(LONG, "memory", Long.toString(bytes), Long.toString(seed));
    return new Target(answer.get(1), number(answer, 0), seed, number(answer, 2) / 1e6);
  }

  private void connect() {
    reading().ask(SHORT, "connect", about(owning()).get(0));
  }

  /** A worker's address, by which others connect to it, and the UCX that it has. */
  private static List<String> about(final Side.Worker worker) {
    return worker.ask(SHORT, "worker");
  }

  /** Asks the reader for gets of the target. */
  private List<String> askForGets(final Duration limit, final String what, final long... numbers) {
    final Stream<String> words = LongStream.of(numbers).mapToObj(Long::toString);
    return reading()
        .ask(
            limit,
            Stream.concat(Stream.of(what, target().key(), Long.toString(target().address())), words)
                .toArray(String[]::new));
  }

  private static long number(final List<String> answer, final int at) {
    if (at >= answer.size()) {
      throw new ProofException("an answer has too few words");
    }
    return Long.parseLong(answer.get(at));
  }

  /**
   * Gets, and compares.
   *
   * @throws ProofException if the get fails or takes too long, or other bytes came
   */
  private void get(final long size, final long place, final long limitMillis) {
    final long wrong =
        number(askForGets(LONG, "get", place, size, target().seed(), limitMillis), 1);
    if (wrong >= 0) {
      throw new ProofException(
          "a get of " + size + " bytes from place " + place + " has brought a wrong byte " + wrong);
    }
  }

  private ProofLine contents() {
    int count = 0;
    for (final long size : sizes()) {
      for (final long place : PLACES) {
        if (size + place <= bytes) {
          get(size, place, GET_MILLIS);
          count++;
        }
      }
    }
    get(bytes, 0, GET_MILLIS);
    return finding(
            Check.CONTENTS,
            "gets of 1 byte to all of the segment that bring the right bytes and no more",
            Result.PASSED,
            "")
        .measured(bytes, count + 1, "gets");
  }

  private long[] sizes() {
    return LongStream.of(SIZES).filter(size -> size <= bytes).toArray();
  }

  private ProofLine oneSided() {
    final String what = "gets that end with the right bytes while the owner is stopped";
    int ended = 0;
    String why = "";
    owning().stop();
    try {
      for (final long size : sizes()) {
        get(size, 0, adapters ? STOPPED_MILLIS : EMULATED_MILLIS);
        if (!owning().isStopped()) {
          throw new ProofException("the owner was not stopped all the time");
        }
        ended++;
      }
    } catch (final ProofException e) {
      why =
          e.getMessage()
              + (adapters
                  ? ": gets are emulated by the owner's processor (UCX_LOG_LEVEL=info and"
                      + " UCX_PROTO_INFO=y say what UCX chooses)"
                  : ": without an adapter at both ends the owner's processor takes part");
    } finally {
      owning().resume();
    }
    reading().ask(SHORT.plus(LONG), "await", Long.toString(LONG.toMillis()));
    final Result result = Result.of(why.isEmpty());
    return finding(Check.ONE_SIDED, what, result, why)
        .measured(0, ended, "of " + sizes().length + " gets");
  }

  private void rates() {
    for (long size = 1; size <= bytes; size *= RATE_STEP) {
      rate(size, 1);
    }
    if (DEPTH_BYTES <= bytes) {
      rate(DEPTH_BYTES, DEPTH);
    }
  }

  /** A latency, and for large ones how much comes. */
  private void rate(final long size, final int depth) {
    final String what = depth == 1 ? "gets, one after the other" : depth + " gets at a time";
    try {
      final List<String> answer =
          askForGets(LONG, "rate", size, depth, extent.rateMillis(), GET_MILLIS);
      if (depth == 1) {
        final double micros = number(answer, 2) / 1e3;
        findings.accept(
            finding(Check.RATE, what, Result.PASSED, "median").measured(size, micros, "us"));
      }
      if (size >= 4 << 10) {
        final double rate = (double) size * number(answer, 0) / Math.max(1, number(answer, 1));
        findings.accept(
            finding(Check.RATE, what, Result.PASSED, "mean").measured(size, rate, "GB/s"));
      }
    } catch (final Side.LostException e) {
      throw e;
    } catch (final RuntimeException e) {
      findings.accept(
          finding(Check.RATE, what, Result.FAILED, reason(e)).measured(size, Double.NaN, "us"));
    }
  }

  /** Each round with an owner of its own; the reader is the same, and has to go on. */
  private ProofLine killed() {
    int struck = 0;
    double worst = 0;
    for (int round = 0; round < extent.kills(); round++) {
      if (round > 0) {
        owning().close();
        owning = owner.start(kind);
        target = memory(owning());
        connect();
        get(Math.min(bytes, SIZES[SIZES.length - 1]), 0, GET_MILLIS);
      }
      struck += killUnderGets() ? 1 : 0;
      worst = Math.max(worst, lastMillis);
    }
    reading().ask(SHORT, "loopback");
    final boolean any = struck > 0;
    return finding(
            Check.KILLED,
            "longest time from giving a killed owner up until all its gets have ended, each once",
            any ? Result.PASSED : extent.kills() == 0 ? Result.SKIPPED : Result.FAILED,
            any
                ? struck + " of " + extent.kills() + " were killed while gets were under way"
                : "none was killed while gets were under way")
        .measured(KILL_BYTES, worst, "ms");
  }

  /** Returns whether gets were under way when the owner died. */
  private boolean killUnderGets() {
    askForGets(SHORT, "begin", Math.min(bytes, KILL_BYTES), KILL_GETS);
    try {
      clock.sleep(Duration.ofMillis(ThreadLocalRandom.current().nextInt(MAX_PAUSE_MS)));
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ProofException("interrupted", e);
    }
    owning().kill();
    final boolean underWay = number(reading().ask(SHORT, "under-way"), 0) > 0;
    reading().ask(SHORT, "release"); // As executors do when the owner's connection ends.
    final List<String> ends = reading().ask(LONG, "await", Long.toString(KILLED_MILLIS));
    if (number(ends, 0) != 0 || number(ends, 3) != 0) {
      throw new ProofException(
          ends.get(0)
              + " gets of an owner that was killed had not ended after "
              + KILLED_MILLIS
              + " ms, "
              + ends.get(3)
              + " ended more than once");
    }
    lastMillis = number(ends, 4) / 1e6;
    return underWay;
  }
}
