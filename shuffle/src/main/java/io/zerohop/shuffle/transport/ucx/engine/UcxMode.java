package io.zerohop.shuffle.transport.ucx.engine;

import java.util.Locale;

/** How bytes come from another node. */
public enum UcxMode {
  /** Whichever a test read finds to be faster, for each peer. */
  AUTO,
  /** By one-sided gets from the owner's memory. */
  GET,
  /** By messages that the owner sends. */
  MESSAGE;

  /** Lower-case name, as in {@code spark.zerohop.ucx.mode}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
