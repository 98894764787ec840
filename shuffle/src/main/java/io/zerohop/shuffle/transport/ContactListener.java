package io.zerohop.shuffle.transport;

/**
 * Hears of each executor whose memory this one reads from now on, after every connection to it.
 * Called by threads that connect; must return at once and throw nothing. Thread safe.
 */
@FunctionalInterface
public interface ContactListener {
  /** Hears nothing. */
  ContactListener NONE = (executorId, how) -> {};

  /**
   * An executor was connected to.
   *
   * @param executorId the owner of the memory
   * @param how the way by which it is read, and what was measured, in words
   */
  void met(String executorId, String how);
}
