package io.zerohop.device.posix;

/** Sleeping on a 32-bit word of shared memory, across processes. */
public final class Futex {
  private Futex() {}

  /**
   * Sleeps while the word at {@code address} is {@code expected}, at most {@code nanos} ns. May
   * return early for no reason: look at the word again.
   */
  public static native void await(long address, int expected, long nanos);

  /** Wakes every sleeper on the word, in every process that maps it. */
  public static native void wake(long address);
}
