package io.zerohop.spark.executor;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Repeats a start once after a failure that may be temporary (category RETRY), such as a folder
 * that was removed while a socket was created in it. Everything else fails at once.
 */
final class StartAttempts {
  private static final Logger LOG = LoggerFactory.getLogger(StartAttempts.class);

  private final int most;
  private final Duration pause;
  private final Clock clock;

  /**
   * Attempts.
   *
   * @param most at least one
   * @param pause before each further one
   * @param clock by which it pauses
   */
  StartAttempts(final int most, final Duration pause, final Clock clock) {
    this.most = most;
    this.pause = pause;
    this.clock = clock;
  }

  /**
   * Makes them in this thread.
   *
   * @throws ZerohopException of the last attempt
   */
  <T> T run(final String what, final Supplier<T> start) {
    for (int attempt = 1; ; attempt++) {
      try {
        return start.get();
      } catch (final ZerohopException e) {
        if (e.category() != ZerohopException.Category.RETRY || attempt == most || !sleep()) {
          throw e;
        }
        LOG.info("Zerohop: {} failed, retrying: {}", what, e.getMessage());
      }
    }
  }

  /** False if the thread is interrupted, which stays set. */
  private boolean sleep() {
    try {
      clock.sleep(pause);
      return true;
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
