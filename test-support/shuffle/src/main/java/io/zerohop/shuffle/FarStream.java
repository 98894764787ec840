package io.zerohop.shuffle;

import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.Signal;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.DeviceOnlyGpu.Failure;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A stream of a {@link DeviceOnlyGpu}: what its batches name has to be within the device's reach,
 * and it fails, waits and is interrupted as the device was told.
 */
final class FarStream implements CopyStream {
  private static final long LATE_MILLIS = 20;

  private final DeviceOnlyGpu device;
  private final CopyStream stream;

  /** Buffers that its batches name, since it was last waited for. */
  private final Set<Long> touched = ConcurrentHashMap.newKeySet();

  FarStream(final DeviceOnlyGpu device, final CopyStream stream) {
    this.device = device;
    this.stream = stream;
  }

  @Override
  public CopyBatch newBatch() {
    return new FarBatch(stream.newBatch());
  }

  @Override
  public void submit(final CopyBatch batch) {
    if (device.fails(Failure.REFUSED)) {
      throw new ZerohopException(ZerohopException.Category.RETRY, "it does not copy");
    }
    device.begin(this);
    device.holdUp(stream);
    stream.submit(((FarBatch) batch).batch);
  }

  @Override
  public void submit(final SpliceBatch batch) {
    throw new UnsupportedOperationException("columns are joined by those who read them");
  }

  @Override
  public void submit(final RowHashBatch batch, final long resultAddress) {
    throw new UnsupportedOperationException("rows are hashed by those who write them");
  }

  @Override
  public BlockChecksums checksums(
      final long blocks, final long offsets, final int count, final long bytes) {
    throw new UnsupportedOperationException("blocks are summed up by those who write them");
  }

  @Override
  public BlockChecksums checksums(final long[] addresses, final long[] starts) {
    throw new UnsupportedOperationException("blocks are summed up by those who write them");
  }

  @Override
  public void await(final Signal signal, final int epoch, final Duration limit) {
    stream.await(signal, epoch, limit);
  }

  @Override
  public void raise(final Signal signal, final int epoch) {
    if (device.fails(Failure.OUT_OF_MEMORY)) {
      throw new OutOfMemoryError("there is none left");
    }
    stream.raise(signal, epoch);
  }

  @Override
  public void synchronize(final Duration limit) {
    if (device.takeInterrupt()) {
      throw new WaitException(WaitException.Reason.CANCELLED, "interrupted");
    }
    if (device.fails(Failure.TIMED_OUT) || device.fails(Failure.STUCK)) {
      throw new WaitException(WaitException.Reason.TIMEOUT, "the copies are not done yet");
    }
    if (device.fails(Failure.BROKEN)) {
      throw new ZerohopException(ZerohopException.Category.FATAL, "the GPU is broken");
    }
    if (device.fails(Failure.LATE)) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(LATE_MILLIS));
    }
    stream.synchronize(limit);
    end();
  }

  @Override
  public void close() {
    stream.close();
    end();
    if (device.fails(Failure.STUCK)) {
      throw new ZerohopException(ZerohopException.Category.FATAL, "its copies never end");
    }
  }

  private void end() {
    device.end(this);
    touched.clear();
  }

  /** Whether copies that may be under way use the buffer at this address. */
  boolean touches(final long buffer) {
    return touched.contains(buffer);
  }

  private long reach(final long address, final long length) {
    return device.reach(address, length, touched::add);
  }

  private final class FarBatch implements CopyBatch {
    private final CopyBatch batch;

    FarBatch(final CopyBatch batch) {
      this.batch = batch;
    }

    @Override
    public void add(final long source, final long destination, final long length) {
      final long from = reach(source, length);
      if (device.fabricOf() != null) {
        device.fabricOf().readByKernel(from);
      }
      batch.add(from, reach(destination, length), length);
    }

    @Override
    public void addByEngine(final long source, final long destination, final long length) {
      final long from = reach(source, length);
      if (device.fabricOf() != null) {
        device.fabricOf().readByEngine(from);
      }
      batch.add(from, reach(destination, length), length);
    }

    @Override
    public int size() {
      return batch.size();
    }

    @Override
    public long bytes() {
      return batch.bytes();
    }

    @Override
    public void clear() {
      batch.clear();
    }
  }
}
