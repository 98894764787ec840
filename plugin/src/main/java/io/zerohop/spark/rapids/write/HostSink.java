package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.spillfiles.OverflowingOutput;
import java.io.IOException;
import java.time.Duration;

/**
 * Copies tables to the host by cudf's own copies, for an executor that cannot hold blocks in GPU
 * memory: Zerohop runs nothing on its GPU.
 */
public final class HostSink extends TableSink {
  private final RapidsClasses rapids = RapidsClasses.get();
  private final long checksum;

  /**
   * A new output.
   *
   * @param output owned from now on
   * @param checksum what {@link #checksum} is to say
   */
  public HostSink(final OverflowingOutput output, final long checksum) {
    super(output);
    this.checksum = checksum;
  }

  @Override
  public void append(final OutputBatch batch) throws IOException {
    try (HostTables tables = toHost(batch)) {
      append(batch, tables.payload(), () -> tables);
    }
  }

  @Override
  void open(final KudoBatch batch) {
    batch.open(rapids, null, Duration.ZERO); // Blocks are summed up on the host.
  }

  /** Waits for each copy, so the tables may be freed when this returns. */
  private HostTables toHost(final OutputBatch batch) {
    final long bytes = Math.max(1, batch.bytes());
    final HostMemoryBuffer memory = rapids.withRetry(() -> HostMemoryBuffer.allocate(bytes));
    boolean done = false;
    try {
      final long first = memory.getAddress();
      final long[] starts =
          batch.layOut(
              first,
              (from, offset, at, length) -> {
                try (HostMemoryBuffer part = memory.slice(at - first, length);
                    DeviceMemoryBuffer piece = from.slice(offset, length)) {
                  part.copyFromDeviceBuffer(piece);
                }
              });
      done = true;
      return new HostTables(starts, memory::close);
    } finally {
      if (!done) {
        memory.close();
      }
    }
  }

  @Override
  public long checksum() {
    return checksum;
  }
}
