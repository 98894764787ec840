package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.doctor.RateCheck.Rate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs checks one after the other, each in its own thread and with a time limit. A check that fails
 * or does not end is a finding, and the next one goes on. Used by one thread.
 *
 * <p>What decides at run time is asked itself wherever it can be: there is no second opinion that
 * could differ. Classes of this package whose names begin with {@code Spark} need Spark, and so
 * does {@link RunningDoctor}; no other one does.
 */
public final class Examination {
  /** How long an interrupted check may take to clean up. */
  private static final Duration PATIENCE = Duration.ofSeconds(5);

  private final Notes all = new Notes();

  /** Runs one, which is about this item should it fail or not end. */
  Examination run(final Item item, final Duration limit, final Check check) {
    final Notes notes = new Notes();
    final Thread thread =
        Threads.daemonOfCaller(() -> guarded(item, check, notes), "doctor-" + item.key());
    try {
      thread.start();
    } catch (final ZerohopException noThread) {
      notes.add(item.fail(noThread, ""));
      all.addAll(notes);
      return this;
    }
    if (!ended(thread, limit)) {
      notes.add(
          item.fail(
              "the check did not end within " + limit.toSeconds() + " s and was stopped",
              "see where thread " + thread.getName() + " hangs (jstack), and the kernel's log"));
      thread.interrupt();
      ended(thread, PATIENCE);
    }
    all.addAll(notes); // A check that still writes is not heard any more.
    return this;
  }

  private static boolean ended(final Thread thread, final Duration limit) {
    return Deadline.in(limit).await(() -> !thread.isAlive(), thread::join);
  }

  private static void guarded(final Item item, final Check check, final Notes notes) {
    try {
      check.run(notes);
    } catch (final ZerohopException e) {
      notes.add(item.fail(e, ""));
    } catch (final Exception | LinkageError e) {
      notes.add(
          item.fail(
              Message.of("the check failed")
                  .because(e)
                  .orRemedy("report this line, unless it says what is wrong")));
    }
  }

  public Notes notes() {
    return all;
  }

  /** Checks one or a few items. Ends by itself within a limited time, and leaves nothing behind. */
  @FunctionalInterface
  interface Check {
    /** Adds what it finds. What keeps it from looking is reported, too. */
    void run(Notes notes) throws Exception;
  }

  /** The findings of checks. Thread safe, since a check that does not end in time still writes. */
  public static final class Notes {
    private final List<Finding> findings = new ArrayList<>();
    private final List<Rate> rates = new ArrayList<>();

    synchronized void add(final Finding finding) {
      findings.add(finding);
    }

    synchronized void add(final Rate rate) {
      rates.add(rate);
    }

    private synchronized void addAll(final Notes other) {
      findings.addAll(other.findings());
      rates.addAll(other.rates());
    }

    /** A copy, in the order in which they came. */
    public synchronized List<Finding> findings() {
      return new ArrayList<>(findings);
    }

    /** A copy, as of {@link #findings}. */
    public synchronized List<Rate> rates() {
      return new ArrayList<>(rates);
    }
  }
}
