package io.zerohop.spark.doctor;

import java.util.Locale;

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

  /** Its name in reports. */
  public String key() {
    return name().toLowerCase(Locale.ROOT);
  }
}
