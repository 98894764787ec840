package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyRuns;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.SpliceBatch;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.format.TableAssembly;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Gathers by launches of Zerohop's kernels, from all memory that the GPU reaches. */
public final class DeviceGather implements TableGather {
  private final ShuffleNode node;
  private final Duration limit;
  private final TaskStream stream;

  /** What the stream is to wait for, and a block of each. */
  private final Map<SignalEpoch, FetchedBlock> awaited = new LinkedHashMap<>();

  private boolean underWay;

  /**
   * @param limit of one gather
   */
  public DeviceGather(final ShuffleNode node, final Duration limit) {
    this.node = node;
    this.limit = limit;
    this.stream = new TaskStream(node::gpuStream);
  }

  @Override
  public void await(final FetchedBlock block) {
    final SignalEpoch ready = block.ready();
    if (ready != null) {
      awaited.putIfAbsent(ready, block);
    }
  }

  /**
   * The stream waits on the GPU, right before it gathers: one launch of one warp for all blocks.
   * The gather's own launch could wait, but would hold multiprocessors that the copies need that it
   * waits for.
   */
  private void enqueueWaits(final CopyStream by) {
    underWay = true;
    if (!awaited.isEmpty()) {
      by.await(List.copyOf(awaited.keySet()), node.readyTimeout());
    }
  }

  /**
   * Ends these waits with the result that they wait for, or that of its owner. A failed wait is
   * passed over silently, and its result may come later, so it also makes sure that the work before
   * them was done.
   */
  private void seeToWaits() {
    if (awaited.isEmpty()) {
      return;
    }
    try {
      awaited.values().forEach(FetchedBlock::awaitReady);
      stream.get().synchronize(limit);
    } catch (final RuntimeException e) {
      stream.close(); // What is behind the wait does not happen.
      throw e;
    } finally {
      awaited.clear();
    }
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
    final CopyStream by = stream.get();
    final CopyBatch copy = by.newBatch();
    final SpliceBatch splice = new SpliceBatch();
    plan.fill(sources, destination, copy, splice);
    enqueueWaits(by);
    by.submit(copy);
    by.submit(splice);
    seeToWaits();
  }

  @Override
  public void copy(final List<Piece> pieces, final DeviceMemoryBuffer to) {
    final CopyStream by = stream.get();
    final CopyBatch batch = by.newBatch();
    final CopyRuns runs = new CopyRuns(batch);
    for (final Piece piece : pieces) {
      runs.add(piece.source(), to.getAddress() + piece.offset(), piece.bytes());
    }
    runs.end();
    enqueueWaits(by);
    by.submit(batch);
    seeToWaits();
  }

  @Override
  public int[] checksums(final long[] addresses, final long[] lengths) {
    return BlockChecksums.of(stream.get(), addresses, lengths, limit);
  }

  @Override
  public void finish() {
    if (underWay) {
      stream.get().synchronize(limit);
      underWay = false;
    }
  }

  @Override
  public void close() {
    stream.close();
  }
}
