package io.zerohop.shuffle.transport.remote;

import org.jspecify.annotations.Nullable;

/** The end of a request. Called once, by a carrier's thread, which must not be blocked. */
@FunctionalInterface
public interface Completion {

  /**
   * The request has ended.
   *
   * @param failure what the carrier says of it; absent if it succeeded
   */
  void done(@Nullable String failure);
}
