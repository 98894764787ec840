package io.zerohop.shuffle.catalog;

/**
 * One registration of a shuffle in this executor: from the first writer until the shuffle is
 * unregistered. What was begun in it must not outlive it. Thread safe.
 */
public final class Registration {
  private volatile boolean ended;

  Registration() {}

  /** Returns whether the shuffle was unregistered since; once true, always true. */
  public boolean isEnded() {
    return ended;
  }

  void end() {
    ended = true;
  }
}
