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
 * could differ. Classes of this package whose names begin with {@code Spark} need Spark; no other
 * one does.
 */
public final class Examination {
  /** How long an interrupted check may take to clean up. */
  private static final Duration PATIENCE = Duration.ofSeconds(5);

  private final Notes all = new Notes();

  /**
   * Runs one.
   *
   * @param item what it is about, should it not end or fail
   */
  Examination run(final Item item, final Duration limit, final Check check) {
    final Notes notes = new Notes();
    final Thread thread =
        Threads.daemonOfCaller(() -> guarded(item, check, notes), "doctor-" + item.key());
    try {
      thread.start();
    } catch (final ZerohopException noThread) {
      notes.add(Finding.fail(item, noThread, ""));
      all.addAll(notes);
      return this;
    }
    if (!ended(thread, limit)) {
      notes.add(
          Finding.fail(
              item,
              "the check did not end within " + limit.toSeconds() + " s and was stopped",
              "see where thread " + thread.getName() + " hangs (jstack), and the kernel's log"));
      thread.interrupt();
      ended(thread, PATIENCE);
    }
    notes.close();
    all.addAll(notes);
    return this;
  }

  private static boolean ended(final Thread thread, final Duration limit) {
    return Deadline.in(limit).await(() -> !thread.isAlive(), thread::join);
  }

  private static void guarded(final Item item, final Check check, final Notes notes) {
    try {
      check.run(notes);
    } catch (final ZerohopException e) {
      notes.add(Finding.fail(item, e, ""));
    } catch (final Exception | LinkageError e) {
      notes.add(
          Finding.fail(
              item,
              Message.of("the check failed")
                  .because(e)
                  .orRemedy("report this line, unless it says what is wrong")));
    }
  }

  /** Returns the findings so far. */
  public Notes notes() {
    return all;
  }

  /** Checks one or a few items. Ends by itself within a limited time, and leaves nothing behind. */
  @FunctionalInterface
  interface Check {

    /**
     * Looks.
     *
     * @param notes gets what was found
     * @throws Exception whatever keeps it from looking, which is reported
     */
    void run(Notes notes) throws Exception;
  }

  /**
   * The findings of checks. Thread safe: a check that did not end in time may still be writing, and
   * is not heard any more.
   */
  public static final class Notes {
    private final List<Finding> findings = new ArrayList<>();
    private final List<Rate> rates = new ArrayList<>();
    private boolean closed;

    /** Adds a finding, unless these are closed. */
    synchronized void add(final Finding finding) {
      if (!closed) {
        findings.add(finding);
      }
    }

    /** Adds a rate, unless these are closed. */
    synchronized void add(final Rate rate) {
      if (!closed) {
        rates.add(rate);
      }
    }

    /** Adds all of another's. */
    synchronized void addAll(final Notes other) {
      findings.addAll(other.findings());
      rates.addAll(other.rates());
    }

    /** Nothing is added any more. */
    synchronized void close() {
      closed = true;
    }

    /** A copy, in the order in which they came. */
    public synchronized List<Finding> findings() {
      return new ArrayList<>(findings);
    }

    /** A copy, in the order in which they came. */
    public synchronized List<Rate> rates() {
      return new ArrayList<>(rates);
    }
  }
}
