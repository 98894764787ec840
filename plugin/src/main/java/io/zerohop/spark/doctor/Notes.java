package io.zerohop.spark.doctor;

import java.util.ArrayList;
import java.util.List;

/**
 * The findings of checks. Thread safe: a check that did not end in time may still be writing, and
 * is not heard any more.
 */
public final class Notes {
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
