package io.zerohop.shuffle.pool;

/** A segment that a peer lends, as its borrower's pool sees it. */
@FunctionalInterface
public interface Loan {

  /**
   * The segment is closed here and goes back. Called once, under the pool's lock; does not wait.
   */
  void giveBack();
}
