package io.zerohop.device;

import io.zerohop.device.Signal.SignalEpoch;
import java.time.Duration;
import java.util.List;

/**
 * An ordered queue of copies, waits and raises on one device. Operations return once accepted and
 * happen in the order in which they were submitted. One thread submits at a time.
 */
public interface CopyStream extends AutoCloseable {

  /** A new, empty batch for this stream's device. */
  CopyBatch newBatch();

  /** Enqueues all copies of the batch; the batch must stay untouched until the stream passed it. */
  void submit(CopyBatch batch);

  /** Enqueues the putting together of columns; the batch may be filled again at once. */
  void submit(SpliceBatch batch);

  /**
   * Enqueues the hashing of rows; the batch may be filled again at once.
   *
   * @param resultAddress of 8 bytes for each of the batch's results, in a {@link HostBuffer}; they
   *     are there after {@link #synchronize}
   * @throws IllegalStateException if columns of the batch's last table are missing
   */
  void submit(RowHashBatch batch, long resultAddress);

  /**
   * Enqueues the CRC32C of blocks.
   *
   * @param blocks address of the first block
   * @param offsets address, for the device, of {@code count + 1} 64-bit numbers: where each block
   *     begins, counted from the first, and where the last one ends
   * @param count up to {@link BlockChecksums#MAX_BLOCKS}
   * @param bytes of all blocks, or more; what lies behind them is not looked at
   * @return the checksums, to be taken after {@link #synchronize}
   */
  BlockChecksums checksums(long blocks, long offsets, int count, long bytes);

  /**
   * The same for blocks that lie anywhere.
   *
   * @param addresses of up to {@link BlockChecksums#MAX_LISTED} blocks
   * @param starts where each block begins if the blocks are counted one behind the other, and where
   *     the last one ends: up to 2 GiB
   */
  BlockChecksums checksums(long[] addresses, long[] starts);

  /**
   * Enqueues a wait until {@code signal} is at least {@code epoch}. When the limit passes, or the
   * signal is aborted, everything behind it is skipped and {@link #synchronize} throws.
   */
  void await(Signal signal, int epoch, Duration limit);

  /**
   * The same for several signals, which a device can wait for in one launch.
   *
   * @param limit the longest time that all waits may take together
   */
  default void await(final List<SignalEpoch> all, final Duration limit) {
    submit(newBatch(), all, List.of(), limit);
  }

  /**
   * Enqueues {@code signal.raise(epoch)}: everything submitted before is visible to its waiters.
   */
  void raise(Signal signal, int epoch);

  /**
   * Waits, copies and raises in one submission, which a device can do in one launch: all of {@code
   * after} come true, the batch's copies are made, all of {@code then} are raised. If a wait fails,
   * none of the rest happens and {@link #synchronize} throws.
   *
   * @param limit the longest time that all waits may take together
   */
  default void submit(
      final CopyBatch batch,
      final List<SignalEpoch> after,
      final List<SignalEpoch> then,
      final Duration limit) {
    after.forEach(wanted -> await(wanted.signal(), wanted.epoch(), limit));
    submit(batch);
    then.forEach(next -> raise(next.signal(), next.epoch()));
  }

  /**
   * Waits until everything submitted so far has happened. A failure is reported once; afterwards
   * the stream is usable again.
   *
   * @throws WaitException (RETRY) if the limit passed or an enqueued wait failed
   */
  void synchronize(Duration limit);

  /**
   * Aborts what has not begun, waits for what has, and gives the stream back. Idempotent.
   *
   * @throws ZerohopException (FATAL) if it does not end: no memory that it uses may be freed
   */
  @Override
  void close();
}
