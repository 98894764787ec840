package io.zerohop.spark.proof;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import java.time.Duration;

/** Gets that were begun together, and how each has ended. Thread safe. */
final class Begun {
  /** Gets that may be begun together. */
  static final int MOST = 1000;

  private final Clock clock;
  private final long begin;

  @GuardedBy("this")
  private final int[] ends;

  @GuardedBy("this")
  private int started;

  @GuardedBy("this")
  private int done;

  @GuardedBy("this")
  private int failed;

  @GuardedBy("this")
  private long lastEnd;

  @GuardedBy("this")
  private String failure = "";

  Begun(final int count, final Clock clock) {
    this.clock = clock;
    ends = new int[count];
    begin = clock.nanos();
  }

  /** One is begun now. */
  synchronized void started() {
    started++;
  }

  /**
   * One has ended.
   *
   * @param how null if it has brought its bytes
   */
  synchronized void ended(final int number, final String how) {
    ends[number]++;
    lastEnd = clock.nanos();
    if (ends[number] == 1) {
      done++;
      failed += how == null ? 0 : 1;
      failure = how == null ? failure : how;
    }
    notifyAll();
  }

  /** Waits until all have ended, or so long. */
  synchronized void await(final Duration limit) throws InterruptedException {
    final long end = clock.in(limit);
    while (done < started && !clock.isOver(end)) {
      clock.await(this, clock.left(end));
    }
  }

  /**
   * Waits until all have brought their bytes.
   *
   * @throws ProofException if one fails, or does not end within the limit
   */
  synchronized void awaitWell(final long millis, final long bytes) throws InterruptedException {
    await(Duration.ofMillis(millis));
    if (done < started) {
      throw new ProofException("a get of " + bytes + " bytes did not end within " + millis + " ms");
    }
    if (failed > 0) {
      throw new ProofException("a get of " + bytes + " bytes failed: " + failure);
    }
  }

  synchronized int underWay() {
    return started - done;
  }

  synchronized int well() {
    return done - failed;
  }

  synchronized int ill() {
    return failed;
  }

  /** Those whose end was told more than once, which must not be. */
  synchronized long twice() {
    long twice = 0;
    for (final int each : ends) {
      twice += each > 1 ? 1 : 0;
    }
    return twice;
  }

  /** From the begin to the last end. */
  synchronized long nanos() {
    return lastEnd - begin;
  }
}
