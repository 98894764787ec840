package io.zerohop.device;

import io.zerohop.device.Signal.SignalEpoch;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Streams of one device that are used again: opening one takes longer than many a batch. Thread
 * safe; owns the idle streams, and those that come back. To be closed before the device.
 */
public final class StreamPool implements AutoCloseable {
  private static final int MAX_IDLE = 32;

  private final Function<String, CopyStream> opener;
  private final Deque<CopyStream> idle = new ArrayDeque<>();
  private int opened;
  private boolean closed;

  /**
   * A pool.
   *
   * @param opener opens a stream of that name, as {@link Device#openStream} does
   */
  public StreamPool(final Function<String, CopyStream> opener) {
    this.opener = opener;
  }

  /**
   * Takes a stream on which nothing is under way. Closing it gives it back; one that was not waited
   * for to the end is closed for good, as by {@link CopyStream#close}.
   */
  public CopyStream take() {
    final int number;
    synchronized (this) {
      if (!idle.isEmpty()) {
        return new Taken(idle.pop());
      }
      number = ++opened;
    }
    return new Taken(opener.apply("pooled-" + number));
  }

  /**
   * Runs work on a stream that it has alone, and gives the stream back once all of it has ended.
   *
   * @throws ZerohopException if it does not end (FATAL): whatever the work has failed with before,
   *     which is suppressed, memory that it uses must not be used again
   */
  public void run(final Consumer<CopyStream> work) {
    final CopyStream stream = take();
    try {
      work.accept(stream);
    } catch (final RuntimeException | Error e) {
      try {
        stream.close();
      } catch (final RuntimeException unended) {
        unended.addSuppressed(e);
        throw unended;
      }
      throw e;
    }
    stream.close();
  }

  private void giveBack(final CopyStream stream) {
    synchronized (this) {
      if (!closed && idle.size() < MAX_IDLE) {
        idle.push(stream);
        return;
      }
    }
    stream.close();
  }

  /** Closes idle streams; those that are out are closed when they come back. */
  @Override
  public void close() {
    final List<CopyStream> all;
    synchronized (this) {
      closed = true;
      all = List.copyOf(idle);
      idle.clear();
    }
    all.forEach(CopyStream::close);
  }

  private final class Taken implements CopyStream {
    private final CopyStream stream;
    private boolean busy;
    private boolean returned;

    Taken(final CopyStream stream) {
      this.stream = stream;
    }

    private CopyStream use() {
      if (returned) {
        throw new IllegalStateException(this + " was given back");
      }
      return stream;
    }

    private CopyStream busy() {
      use();
      busy = true;
      return stream;
    }

    @Override
    public CopyBatch newBatch() {
      return use().newBatch();
    }

    @Override
    public void submit(final CopyBatch batch) {
      busy().submit(batch);
    }

    @Override
    public void submit(
        final CopyBatch batch,
        final List<SignalEpoch> after,
        final List<SignalEpoch> then,
        final Duration limit) {
      busy().submit(batch, after, then, limit);
    }

    @Override
    public void submit(final SpliceBatch batch) {
      busy().submit(batch);
    }

    @Override
    public void submit(final RowHashBatch batch, final long resultAddress) {
      busy().submit(batch, resultAddress);
    }

    @Override
    public BlockChecksums checksums(
        final long blocks, final long offsets, final int count, final long bytes) {
      return busy().checksums(blocks, offsets, count, bytes);
    }

    @Override
    public BlockChecksums checksums(final long[] addresses, final long[] starts) {
      return busy().checksums(addresses, starts);
    }

    @Override
    public void await(final Signal signal, final int epoch, final Duration limit) {
      busy().await(signal, epoch, limit);
    }

    @Override
    public void raise(final Signal signal, final int epoch) {
      busy().raise(signal, epoch);
    }

    @Override
    public void synchronize(final Duration limit) {
      use().synchronize(limit);
      busy = false;
    }

    @Override
    public void close() {
      if (returned) {
        return;
      }
      returned = true;
      if (busy) {
        stream.close();
      } else {
        giveBack(stream);
      }
    }

    @Override
    public String toString() {
      return stream.toString();
    }
  }
}
