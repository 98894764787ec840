package io.zerohop.device;

import java.time.Duration;

/**
 * An ordered queue of copies, waits and raises on one device. Operations return once accepted and
 * happen in the order in which they were submitted. One thread submits at a time.
 */
public interface CopyStream extends AutoCloseable {

  /** A new, empty batch for this stream's device. */
  CopyBatch newBatch();

  /** Enqueues all copies of the batch; the batch must stay untouched until the stream passed it. */
  void submit(CopyBatch batch);

  /**
   * Enqueues a wait until {@code signal} is at least {@code epoch}. When the limit passes, or the
   * signal is aborted, everything behind it is skipped and {@link #synchronize} throws.
   */
  void await(Signal signal, int epoch, Duration limit);

  /**
   * Enqueues {@code signal.raise(epoch)}: everything submitted before is visible to its waiters.
   */
  void raise(Signal signal, int epoch);

  /**
   * Waits until everything submitted so far has happened. A failure is reported once; afterwards
   * the stream is usable again.
   *
   * @throws WaitException (RETRY) if the limit passed or an enqueued wait failed
   */
  void synchronize(Duration limit);

  /** Aborts what has not begun, waits for what has, and gives the stream back. Idempotent. */
  @Override
  void close();
}
