package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import io.zerohop.device.HostBuffer;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.TableAssembly;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Gathers by cudf's own copies, table by table and out of its own host memory; Zerohop runs nothing
 * on the GPU. Each copy has ended when {@link #copy} returns.
 */
public final class HostGather implements TableGather {
  /** By address; owned by those who asked for them. */
  private final TreeMap<Long, HostMemoryBuffer> buffers = new TreeMap<>();

  private final RapidsClasses rapids = RapidsClasses.get();

  @Override
  public HostBuffer hostBuffer(final long bytes) {
    final HostMemoryBuffer memory = rapids.withRetry(() -> HostMemoryBuffer.allocate(bytes));
    buffers.put(memory.getAddress(), memory);
    return new HostBuffer() {
      @Override
      public long address() {
        return memory.getAddress();
      }

      @Override
      public long bytes() {
        return memory.getLength();
      }

      @Override
      public void close() {
        if (buffers.values().remove(memory)) {
          memory.close();
        }
      }
    };
  }

  @Override
  public void await(final FetchedBlock block) {
    // What the host reads is there when it is handed out.
  }

  @Override
  public boolean isOnDevice(final FetchedBlock block, final int extent) {
    return false; // Blocks are asked for on behalf of the host.
  }

  @Override
  public boolean reaches(final FetchedBlock block, final int extent) {
    return false;
  }

  @Override
  public boolean canAssemble() {
    return false;
  }

  @Override
  public void assemble(final TableAssembly plan, final long[] sources, final long destination) {
    throw new UnsupportedOperationException("cudf has no copies of this kind");
  }

  @Override
  public void copy(final List<Piece> pieces, final DeviceMemoryBuffer to) {
    for (final Piece piece : pieces) {
      final Map.Entry<Long, HostMemoryBuffer> from = buffers.floorEntry(piece.source());
      try (DeviceMemoryBuffer part = to.slice(piece.offset(), piece.bytes())) {
        part.copyFromHostBuffer(from.getValue(), piece.source() - from.getKey(), piece.bytes());
      }
    }
  }

  @Override
  public int @Nullable [] checksums(final long[] addresses, final long[] lengths) {
    return null;
  }

  @Override
  public void finish() {
    // Nothing is under way.
  }

  @Override
  public void close() {
    // Buffers are closed by their owner.
  }
}
