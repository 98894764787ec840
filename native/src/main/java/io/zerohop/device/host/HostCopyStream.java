package io.zerohop.device.host;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.RowHashLists;
import io.zerohop.device.Signal;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.SpliceLists;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * A queue of operations with one worker thread. While the queue is empty and nothing has to wait,
 * the submitting thread makes the copies itself: most callers submit and synchronize at once, and a
 * hand-over to another thread would cost more than most copies do. The worker starts with the first
 * operation that must wait.
 *
 * <p>The lock guards the queue and the states; operations run outside it, one at a time.
 */
final class HostCopyStream implements CopyStream {
  private final Consumer<Object> onClose;
  private final String name;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final ArrayDeque<Runnable> queue = new ArrayDeque<>();
  private Thread worker;
  private boolean running;
  private RuntimeException failure;
  private volatile boolean closed;

  HostCopyStream(final Consumer<Object> onClose, final String name) {
    this.onClose = onClose;
    this.name = name;
  }

  @Override
  public CopyBatch newBatch() {
    return new HostCopyBatch();
  }

  @Override
  public void submit(final CopyBatch batch) {
    if (!(batch instanceof HostCopyBatch)) {
      throw new IllegalArgumentException("not a batch of the host device: " + batch);
    }
    enqueue(((HostCopyBatch) batch)::run, true);
  }

  @Override
  public SpliceBatch newSplice() {
    return new SpliceLists();
  }

  @Override
  public void submit(final SpliceBatch batch) {
    if (!(batch instanceof SpliceLists lists)) {
      throw new IllegalArgumentException("not a batch of the host device: " + batch);
    }
    final SpliceLists copy = lists.copy();
    enqueue(() -> HostSplice.run(copy), true);
  }

  @Override
  public RowHashBatch newRowHash() {
    return new RowHashLists();
  }

  @Override
  public void submit(final RowHashBatch batch, final long resultAddress) {
    if (!(batch instanceof RowHashLists lists)) {
      throw new IllegalArgumentException("not a batch of the host device: " + batch);
    }
    final RowHashLists copy = lists.copy();
    enqueue(() -> HostRowHash.run(copy, resultAddress), true);
  }

  @Override
  public void await(final Signal signal, final int epoch, final Duration limit) {
    // A signal that was already raised needs no wait, and so no worker.
    enqueue(() -> signal.await(epoch, limit, () -> closed), signal.reached(epoch));
  }

  @Override
  public void raise(final Signal signal, final int epoch) {
    enqueue(() -> signal.raise(epoch), true);
  }

  private void enqueue(final Runnable operation, final boolean prompt) {
    lock.lock();
    try {
      if (closed) {
        throw new IllegalStateException("copy stream " + name + " is closed");
      }
      if (failure != null) {
        return; // Everything behind a failure is skipped until synchronize reports it.
      }
      if (!prompt || running || !queue.isEmpty()) {
        startWorker(); // First: without a worker it would wait in the queue for ever.
        queue.add(operation);
        changed.signalAll();
        return;
      }
      running = true;
    } finally {
      lock.unlock();
    }
    run(operation);
  }

  private void startWorker() {
    if (worker == null) {
      final Thread started = Threads.daemon(this::work, "zerohop-copy-" + name);
      started.start();
      worker = started;
    }
  }

  private void work() {
    while (true) {
      final Runnable operation;
      lock.lock();
      try {
        while (!closed && (running || queue.isEmpty())) {
          changed.awaitUninterruptibly();
        }
        if (closed) {
          return;
        }
        operation = queue.poll();
        running = true;
      } finally {
        lock.unlock();
      }
      run(operation);
    }
  }

  /** Runs one operation; the caller has set {@code running}. */
  private void run(final Runnable operation) {
    RuntimeException failed = null;
    try {
      operation.run();
    } catch (final RuntimeException e) {
      failed = e;
    }
    lock.lock();
    try {
      running = false;
      if (failed != null) {
        failure = failed;
        queue.clear();
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void synchronize(final Duration limit) {
    final Deadline deadline = Deadline.in(limit);
    lock.lock();
    try {
      while (failure == null && (running || !queue.isEmpty())) {
        if (closed) {
          throw new IllegalStateException("copy stream " + name + " is closed");
        }
        awaitChange(deadline, limit);
      }
      if (failure != null) {
        final RuntimeException reported = failure;
        failure = null;
        throw report(reported);
      }
    } finally {
      lock.unlock();
    }
  }

  @SuppressWarnings("WaitNotInLoop") // Its callers loop.
  private void awaitChange(final Deadline deadline, final Duration limit) {
    final long nanos = deadline.remainingNanos();
    if (nanos == 0) {
      throw new WaitException(
          WaitException.Reason.TIMEOUT,
          "host: copy stream " + name + " was not done within " + limit);
    }
    try {
      changed.await(nanos, TimeUnit.NANOSECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new WaitException(
          WaitException.Reason.CANCELLED,
          "host: the wait for copy stream " + name + " was interrupted");
    }
  }

  private ZerohopException report(final RuntimeException cause) {
    final String message = "host: copy stream " + name + " failed: " + cause.getMessage();
    if (cause instanceof WaitException) {
      return new WaitException(((WaitException) cause).reason(), message, cause);
    }
    return new ZerohopException(ZerohopException.Category.RETRY, message, cause);
  }

  /** Waits for the operation in progress only, which a closed stream's wait ends within 10 ms. */
  @Override
  public void close() {
    final boolean first;
    lock.lock();
    try {
      first = !closed;
      closed = true;
      queue.clear();
      changed.signalAll();
      while (running) {
        changed.awaitUninterruptibly();
      }
    } finally {
      lock.unlock();
    }
    if (first) {
      onClose.accept(this);
    }
  }

  @Override
  public String toString() {
    return "copy stream " + name;
  }
}
