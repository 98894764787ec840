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

  /**
   * Whether gets may be taken at all: from host memory they are where there is an RDMA adapter, and
   * from a GPU's. UCX answers no gets otherwise, whoever asks for them.
   *
   * @param gpu whether this process has a GPU
   */
  public boolean oneSided(final boolean gpu) {
    return switch (this) {
      case GET -> true;
      case MESSAGE -> false;
      case AUTO -> gpu || RdmaDevices.any();
    };
  }

  /** Lower-case name, as in {@code spark.zerohop.ucx.mode}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }
}
