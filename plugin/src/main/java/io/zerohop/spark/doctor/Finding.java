package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.spark.report.Advice;
import java.io.Serializable;
import java.util.Locale;

/**
 * One line of the doctor's report, made by its {@link Item}. Immutable.
 *
 * @param message what was found, and what to do about it; without a remedy if there is nothing to
 *     do
 */
public record Finding(Item item, Verdict verdict, Message message) implements Serializable {

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
