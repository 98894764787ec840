package io.zerohop.spark.proof;

/** One of the two hosts of a proof. Used by one thread. */
interface Side {

  /** Its name in reports. */
  String name();

  /** What there is on it. */
  HostFacts facts();

  /**
   * Starts a worker on it, for the caller to close.
   *
   * @throws ProofException if it does not start
   */
  Worker start(MemoryKind kind);
}
