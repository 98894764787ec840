package io.zerohop.spark.proof;

import java.time.Duration;
import java.util.List;

/**
 * A {@link GetWorker} on this host or on the other one. Owned by whoever started it; used by one
 * thread.
 */
interface Worker extends AutoCloseable {

  /** By which other workers connect to it, in hexadecimal digits. */
  String address();

  /** Whose UCX it has, in words. */
  String describe();

  /**
   * Asks it for something and waits.
   *
   * @param limit for the answer
   * @return what a good answer says
   * @throws ProofException with what a bad one says, or if there is none in time, or the process
   *     has ended
   */
  List<String> ask(Duration limit, String... words);

  /** Stops it (SIGSTOP), and returns when it is stopped. */
  void stop();

  /** Lets it go on (SIGCONT). */
  void resume();

  /** Whether the kernel says that it is stopped now. */
  boolean isStopped();

  /** Kills it (SIGKILL), stopped or not. */
  void kill();

  /** Kills it, and waits for its end. Idempotent. */
  @Override
  void close();
}
