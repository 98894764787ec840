package io.zerohop.shuffle.transport.ucx.engine;

/** The end of a request. Called once, by the engine's thread, which must not be blocked. */
@FunctionalInterface
public interface UcxCompletion {

  /**
   * The request has ended.
   *
   * @param failure what UCX says of it; null if it succeeded
   */
  void done(String failure);
}
