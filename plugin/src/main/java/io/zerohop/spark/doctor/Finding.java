package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.spark.report.Advice;
import java.io.Serializable;
import java.util.Locale;

/**
 * One line of the doctor's report. Immutable.
 *
 * @param message what was found, and what to do about it; without a remedy if there is nothing to
 *     do
 */
public record Finding(Item item, Verdict verdict, Message message) implements Serializable {

  static Finding of(
      final Item item, final Verdict verdict, final String what, final String remedy) {
    return new Finding(item, verdict, Message.of(what).remedy(remedy));
  }

  static Finding ok(final Item item, final String what) {
    return of(item, Verdict.OK, what, "");
  }

  static Finding skip(final Item item, final String why) {
    return of(item, Verdict.SKIP, why, "");
  }

  static Finding skip(final Item item, final Message why) {
    return new Finding(item, Verdict.SKIP, why);
  }

  static Finding warn(final Item item, final String what, final String remedy) {
    return of(item, Verdict.WARN, what, remedy);
  }

  static Finding warn(final Item item, final Message message) {
    return new Finding(item, Verdict.WARN, message);
  }

  static Finding fail(final Item item, final String what, final String remedy) {
    return of(item, Verdict.FAIL, what, remedy);
  }

  static Finding fail(final Item item, final Message message) {
    return new Finding(item, Verdict.FAIL, message);
  }

  /** With this remedy, should the failure name none. */
  static Finding fail(final Item item, final Throwable failure, final String otherwise) {
    return fail(item, Message.of(failure).orRemedy(otherwise));
  }

  Advice advice() {
    return Advice.of(item.key(), verdict.key(), message);
  }

  /** The verdict of a check, from best to worst. */
  public enum Verdict {
    /** As it should be. */
    OK,
    /** There was nothing to look at, or nothing to look with; the reason is given. */
    SKIP,
    /** Shuffles work, and something makes them slower or may end them later. */
    WARN,
    /** Something that was asked for, or that everything needs, does not work. */
    FAIL;

    /** This, or that it was skipped, where nobody has asked for what it is about. */
    Verdict where(final boolean wanted) {
      return wanted ? this : SKIP;
    }

    public String key() {
      return name().toLowerCase(Locale.ROOT);
    }
  }
}
