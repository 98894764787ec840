package ai.rapids.cudf;

import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.locks.ReentrantLock;

/**
 * What one stream of the GPU has to do yet, in its order. Nothing of it happens before somebody
 * waits for it, or cudf works on the same stream: as late as on a GPU that is busy. Thread safe.
 */
public final class GpuQueue {
  private static final Set<GpuQueue> ALL = Collections.newSetFromMap(new WeakHashMap<>());
  private static final ThreadLocal<GpuQueue> OF_THREAD = ThreadLocal.withInitial(GpuQueue::new);

  private final Deque<Step> steps = new ArrayDeque<>();
  private final ReentrantLock running = new ReentrantLock();
  private RuntimeException failure;

  /**
   * @param isAlways whether it happens behind a failure as well
   */
  private record Step(Runnable run, boolean isAlways) {}

  /** A stream with nothing to do. */
  public GpuQueue() {
    synchronized (ALL) {
      ALL.add(this);
    }
  }

  /** The stream on which cudf works for the calling thread. */
  public static GpuQueue ofThread() {
    return OF_THREAD.get();
  }

  /** Adds a step; it is passed over if one before it has failed. */
  public void add(final Runnable step) {
    synchronized (steps) {
      steps.add(new Step(step, false));
    }
  }

  /** Adds a step that happens in any case. */
  void addLast(final Runnable step) {
    synchronized (steps) {
      steps.add(new Step(step, true));
    }
    if (idle()) {
      run();
    }
  }

  private boolean idle() {
    synchronized (steps) {
      return steps.size() == 1;
    }
  }

  /** Does everything; a failure is kept for {@link #failure}. */
  public void run() {
    if (running.isHeldByCurrentThread()) {
      return; // A step of it asks.
    }
    running.lock();
    try {
      for (Step next = next(); next != null; next = next()) {
        if (failure == null || next.isAlways()) {
          runStep(next);
        }
      }
    } finally {
      running.unlock();
    }
  }

  private void runStep(final Step step) {
    try {
      step.run().run();
    } catch (final RuntimeException e) {
      failure = failure == null ? e : failure;
    } catch (final AssertionError e) {
      // What it broke fails the test, whatever the product makes of it.
      failure = failure == null ? new IllegalStateException(e.getMessage(), e) : failure;
    }
  }

  private Step next() {
    synchronized (steps) {
      return steps.poll();
    }
  }

  /** Why something was not done, once; null if nothing failed. */
  public RuntimeException failure() {
    final RuntimeException found = failure;
    failure = null;
    return found;
  }

  static void runAll() {
    final GpuQueue[] all;
    synchronized (ALL) {
      all = ALL.toArray(new GpuQueue[0]);
    }
    for (final GpuQueue queue : all) {
      queue.run();
      queue.failure(); // Whoever waited for it was told, or a test wants it unseen.
    }
  }
}
