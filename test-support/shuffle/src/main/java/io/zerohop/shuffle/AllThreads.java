package io.zerohop.shuffle;

import io.zerohop.device.Leaks;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;

/**
 * All threads that this process can have, taken so that nobody else gets one. One thread uses it.
 */
final class AllThreads {
  private static final int MOST = 1_000;

  private final Deque<Sleeper> taken = new ArrayDeque<>();

  private static final class Sleeper extends Thread {
    private final CountDownLatch end = new CountDownLatch(1);

    @Override
    public void run() {
      try {
        end.await();
      } catch (final InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  /**
   * Takes them until the system refuses.
   *
   * @throws AssertionError if it goes on and on, since there is no limit
   */
  void take() {
    try {
      for (int i = 0; i < MOST; i++) {
        final Sleeper sleeper = new Sleeper();
        sleeper.setDaemon(true);
        sleeper.start();
        taken.push(sleeper);
      }
    } catch (final OutOfMemoryError e) {
      return;
    }
    release(MOST);
    throw new AssertionError("there is no limit: " + MOST + " threads were started");
  }

  /** Gives so many back, or all that were taken. */
  void release(final int most) {
    try {
      for (int i = 0; i < most && !taken.isEmpty(); i++) {
        final Sleeper sleeper = taken.pop();
        sleeper.end.countDown();
        sleeper.join();
      }
      Thread.sleep(20); // The system counts a thread a little longer than Java does.
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /**
   * Tries to start a node with no thread left, with one, and so on until it starts.
   *
   * @return in how many tries it was refused, each of which has left nothing behind; and the first
   *     refusal
   */
  String startAnother(final Supplier<ShuffleNode> start) {
    String first = null;
    final Leaks leaks = new Leaks();
    for (int refused = 0; ; refused++) {
      try (ShuffleNode node = start.get()) {
        TestBlocks.write(node, 9, 0, 1, 4, 100);
        node.unregisterShuffle(9);
        return refused + " " + first;
      } catch (final ZerohopException e) {
        if (e.category() != Category.FALLBACK) {
          throw e;
        }
        first = first == null ? e.getMessage() : first;
      }
      leaks.check();
      release(1);
    }
  }
}
