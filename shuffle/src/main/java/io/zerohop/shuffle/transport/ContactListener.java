package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.block.Link;

/**
 * Receives each executor whose memory this one begins to read, after every connection to it. Called
 * by threads that connect; must return at once and throw nothing. Thread safe.
 */
@FunctionalInterface
public interface ContactListener {
  /** Hears nothing. */
  ContactListener NONE = (executorId, how, link, expected) -> {};

  /**
   * An executor was connected to.
   *
   * @param executorId the owner of the memory
   * @param how the way by which it is read, and what was measured, in words
   * @param link to its blocks; those of a GPU where it has one
   * @param expected bytes a second that the link has at least; 0 if that is not known
   */
  void met(String executorId, String how, Link link, long expected);
}
