package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import java.time.Duration;

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
    final Thread thread = Threads.daemon(() -> guarded(item, check, notes), "doctor-" + item.key());
    thread.setContextClassLoader(Thread.currentThread().getContextClassLoader());
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
}
