package io.zerohop.device;

import java.util.Objects;

/** An epoch that a signal is to have: to wait for, or to raise it to. */
public record SignalEpoch(Signal signal, int epoch) {
  /** Refuses null. */
  public SignalEpoch {
    Objects.requireNonNull(signal, "signal");
  }
}
