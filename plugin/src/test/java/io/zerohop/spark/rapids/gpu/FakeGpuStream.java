package io.zerohop.spark.rapids.gpu;

import ai.rapids.cudf.GpuQueue;
import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.Signal;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.agrona.BufferUtil;
import org.agrona.UnsafeAccess;

/** A stream that does nothing before it has to, and looks at each address before it is touched. */
final class FakeGpuStream implements CopyStream {
  private static final Duration LIMIT = Duration.ofMinutes(1);

  private final FakeGpuDevice device;

  /** Does the work, a step at a time. */
  private final CopyStream worker;

  /** Null before a stream in the order of a thread's work was given something. */
  private GpuQueue queue;

  private boolean closed;

  /** Of the last blocks that were summed up. */
  private ByteBuffer sums;

  /**
   * @param queue null if it is that of the thread that submits
   */
  FakeGpuStream(final FakeGpuDevice device, final CopyStream worker, final GpuQueue queue) {
    this.device = device;
    this.worker = worker;
    this.queue = queue;
    this.isThreads = queue == null;
  }

  private final boolean isThreads;

  private void add(final Runnable step) {
    if (closed) {
      throw new IllegalStateException("a stream is used that is closed");
    }
    if (isThreads) {
      final GpuQueue now = GpuQueue.ofThread();
      if (queue != null && queue != now) {
        queue.run();
      }
      queue = now;
    }
    queue.add(step);
  }

  private void work(final Runnable step) {
    step.run();
    worker.synchronize(LIMIT);
  }

  @Override
  public CopyBatch newBatch() {
    return new Copies();
  }

  @Override
  public void submit(final CopyBatch batch) {
    final Copies copies = (Copies) batch;
    add(
        () -> {
          copies.touched.forEach(range -> device.touch(range[0], range[1]));
          work(() -> worker.submit(copies.batch));
        });
  }

  @Override
  public void submit(final SpliceBatch batch) {
    final SpliceBatch lists = batch.copy();
    add(
        () -> {
          lists.forEachOffsets(
              (source, destination, count, delta) -> {
                device.touch(source, (long) Integer.BYTES * count);
                device.touch(destination, (long) Integer.BYTES * count);
              });
          for (int column = 0; column < lists.bitColumns(); column++) {
            device.touch(lists.destination(column), (lists.bits(column) + 31) / 32 * 4L);
          }
          work(() -> worker.submit(lists));
        });
  }

  @Override
  public void submit(final RowHashBatch batch, final long resultAddress) {
    final RowHashBatch lists = batch.copy();
    add(
        () -> {
          device.touch(resultAddress, (long) Long.BYTES * lists.results());
          work(() -> worker.submit(lists, resultAddress));
        });
  }

  @Override
  public BlockChecksums checksums(
      final long blocks, final long offsets, final int count, final long bytes) {
    final int resultBytes = (int) BlockChecksums.resultBytes(count, bytes);
    sums = ByteBuffer.allocateDirect(resultBytes);
    final long results = BufferUtil.address(sums);
    add(
        () -> {
          device.touch(blocks, bytes);
          device.touch(offsets, (long) Long.BYTES * (count + 1));
          final BlockChecksums made = worker.checksums(blocks, offsets, count, bytes);
          worker.synchronize(LIMIT);
          UnsafeAccess.UNSAFE.copyMemory(made.address(), results, resultBytes);
        });
    return new BlockChecksums(results, count);
  }

  @Override
  public BlockChecksums checksums(final long[] addresses, final long[] starts) {
    final int count = addresses.length;
    final int resultBytes = (int) BlockChecksums.resultBytes(count, starts[count]);
    sums = ByteBuffer.allocateDirect(resultBytes);
    final long results = BufferUtil.address(sums);
    add(
        () -> {
          for (int i = 0; i < count; i++) {
            device.touch(addresses[i], starts[i + 1] - starts[i]);
          }
          final BlockChecksums made = worker.checksums(addresses, starts);
          worker.synchronize(LIMIT);
          UnsafeAccess.UNSAFE.copyMemory(made.address(), results, resultBytes);
        });
    return new BlockChecksums(results, count);
  }

  @Override
  public void await(final Signal signal, final int epoch, final Duration limit) {
    add(() -> signal.await(epoch, limit, () -> closed));
  }

  @Override
  public void raise(final Signal signal, final int epoch) {
    add(() -> signal.raise(epoch));
  }

  @Override
  public void synchronize(final Duration limit) {
    if (device.isStuck()) {
      throw new WaitException(WaitException.Reason.TIMEOUT, "fake: it is not done yet");
    }
    if (queue == null) {
      return;
    }
    queue.run();
    final RuntimeException failure = queue.failure();
    if (failure instanceof WaitException wait) {
      throw new WaitException(wait.reason(), "fake: " + wait.getMessage(), wait);
    }
    if (failure != null) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY, "fake: " + failure.getMessage(), failure);
    }
  }

  @Override
  public void close() {
    if (!closed) {
      if (queue != null) {
        queue.run();
      }
      closed = true;
      worker.close();
      if (device.isStuck()) {
        throw new ZerohopException(ZerohopException.Category.FATAL, "fake: it never ends");
      }
    }
  }

  /** Copies, and what they touch. */
  private final class Copies implements CopyBatch {
    private final CopyBatch batch = worker.newBatch();
    private final List<long[]> touched = new ArrayList<>();

    @Override
    public void add(final long source, final long destination, final long length) {
      batch.add(source, destination, length);
      touched.add(new long[] {source, length});
      touched.add(new long[] {destination, length});
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
      touched.clear();
    }
  }
}
