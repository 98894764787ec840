package io.zerohop.spark.doctor;

import java.io.Serializable;
import java.util.Locale;

/**
 * The rate of one path, measured once. Immutable.
 *
 * @param path what they move by
 * @param from where they lie
 * @param to who reads them
 * @param gigabytes in 1e9 bytes a second
 * @param expected the same for a machine of that kind with nothing else to do; 0 if nothing is
 */
public record Rate(String path, String from, String to, double gigabytes, double expected)
    implements Serializable {

  /** Below this part of what is expected something is wrong, and not only busy. */
  private static final double LEAST = 0.5;

  /** Returns whether it is less than half of what is expected. */
  boolean isLow() {
    return gigabytes < LEAST * expected;
  }

  @Override
  public String toString() {
    final String hope = expected > 0 ? String.format(Locale.ROOT, "%.1f", expected) : "-";
    return String.format(
        Locale.ROOT, "%-9s %-14s %-14s %9.1f %9s", path, from, to, gigabytes, hope);
  }
}
