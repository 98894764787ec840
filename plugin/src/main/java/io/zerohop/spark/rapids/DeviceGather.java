package io.zerohop.spark.rapids;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.SpliceBatch;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.fetch.FetchedBlock;
import java.time.Duration;

/** Gathers by launches of our kernels, out of all memory that the GPU reaches. */
final class DeviceGather implements TableGather {
  private final ShuffleNode node;
  private final Duration limit;
  private CopyStream stream;
  private CopyBatch batch;
  private boolean underWay;

  /**
   * @param limit of one gather
   */
  DeviceGather(final ShuffleNode node, final Duration limit) {
    this.node = node;
    this.limit = limit;
  }

  private CopyStream stream() {
    if (stream == null) {
      stream = node.gpuStream();
    }
    return stream;
  }

  @Override
  public HostBuffer hostBuffer(final long bytes) {
    return node.gpuHostBuffer(bytes);
  }

  @Override
  public boolean isOnDevice(final FetchedBlock block, final int extent) {
    return block.extentOnDevice(extent);
  }

  @Override
  public boolean reaches(final FetchedBlock block, final int extent) {
    return block.extentReachable(extent);
  }

  @Override
  public boolean canAssemble() {
    return true;
  }

  @Override
  public void assemble(final TableAssembly plan, final long[] sources, final long destination) {
    final CopyBatch copy = stream().newBatch();
    final SpliceBatch splice = stream.newSplice();
    plan.fill(sources, destination, copy, splice);
    underWay = true;
    stream.submit(copy);
    stream.submit(splice);
  }

  @Override
  public void add(
      final long source, final DeviceMemoryBuffer to, final long offset, final long bytes) {
    if (batch == null) {
      batch = stream().newBatch();
    }
    batch.add(source, to.getAddress() + offset, bytes);
  }

  @Override
  public void launch() {
    if (batch != null) {
      final CopyBatch added = batch;
      batch = null;
      underWay = true;
      stream.submit(added);
    }
  }

  @Override
  public void finish() {
    if (underWay) {
      stream.synchronize(limit);
      underWay = false;
    }
  }

  @Override
  public void close() {
    batch = null;
    if (stream != null) {
      final CopyStream last = stream;
      stream = null;
      last.close();
    }
  }
}
