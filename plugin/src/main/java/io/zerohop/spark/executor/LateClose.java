package io.zerohop.spark.executor;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.log.SparkCode;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Closes resources that tasks may still use. A SparkContext that stops does not wait for its tasks,
 * and in a notebook the process goes on and starts the next one: so what cannot be freed now is
 * tried again, by a daemon thread, until the last task has let go of it. Thread safe.
 */
record LateClose(String what, AutoCloseable resource, Duration limit, Clock clock) {
  private static final Logger LOG = LoggerFactory.getLogger(LateClose.class);
  private static final Duration PAUSE = Duration.ofMillis(200);
  private static final Duration LIMIT = Duration.ofHours(1);

  /**
   * Closes a resource now, or once nobody uses it any more, but for an hour at most. Returns at
   * once.
   *
   * @param what the resource is, for messages and the thread's name
   * @param resource throws IllegalStateException as long as it is in use, and may be closed again
   */
  static void of(final String what, final AutoCloseable resource, final Clock clock) {
    of(what, resource, LIMIT, clock);
  }

  /** Closes with another limit, after which what is in use stays until the process ends. */
  static void of(
      final String what, final AutoCloseable resource, final Duration limit, final Clock clock) {
    final LateClose late = new LateClose(what, resource, limit, clock);
    final IllegalStateException use = late.tryOnce();
    if (use == null) {
      return;
    }
    LOG.info("Zerohop: {} is freed when its last task ends: {}", what, use.getMessage());
    final Thread thread = Threads.daemon(late::untilFree, "zerohop-late-close");
    try {
      thread.start();
    } catch (final ZerohopException e) {
      SparkCode.LATE_CLOSE_NOT_STARTED
          .says("cannot wait for the last task of a stopped SparkContext; its memory is kept")
          .at(what)
          .because(e)
          .warn(LOG, e);
    }
  }

  /** Null if it needs no further try. */
  private @Nullable IllegalStateException tryOnce() {
    try {
      resource.close();
      return null;
    } catch (final IllegalStateException inUse) {
      return inUse;
    } catch (final Exception e) {
      SparkCode.NOT_FREED
          .says(
              "could not free the memory of a stopped SparkContext; it stays until this process"
                  + " ends")
          .at(what)
          .because(e)
          .warn(LOG, e);
      return null;
    }
  }

  private void untilFree() {
    final long end = clock.in(limit);
    IllegalStateException use = tryOnce();
    while (use != null && !clock.isOver(end)) {
      try {
        clock.sleep(PAUSE);
      } catch (final InterruptedException e) {
        LOG.debug("{} is tried again before its time", what, e); // Nobody knows this thread.
      }
      use = tryOnce();
    }
    if (use != null) {
      SparkCode.STILL_IN_USE
          .says(
              "memory is still in use "
                  + limit.toSeconds()
                  + " s after its SparkContext stopped, and stays until this process ends")
          .at(what)
          .remedy("restart the process")
          .warn(LOG, use);
    }
  }
}
