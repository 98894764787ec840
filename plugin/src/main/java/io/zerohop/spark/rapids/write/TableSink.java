package io.zerohop.spark.rapids.write;

import io.zerohop.shuffle.write.PackSource;
import io.zerohop.spark.spillfiles.OverflowingOutput;
import java.io.IOException;
import java.util.function.Supplier;

/**
 * The target of one map task's tables. Belongs to the task's thread; {@link #close} frees what was
 * not committed.
 */
public abstract sealed class TableSink implements AutoCloseable permits DeviceSink, HostSink {
  private final OverflowingOutput output;

  /**
   * @param output owned from now on
   */
  TableSink(final OverflowingOutput output) {
    this.output = output;
  }

  /** Takes a batch, which may be cleared when this returns. */
  public abstract void append(OutputBatch batch) throws IOException;

  /**
   * Takes a batch that is split already, in slices.
   *
   * @param sliceBytes the most bytes of a slice of several blocks
   */
  public final void append(final KudoBatch batch, final long sliceBytes) throws IOException {
    hash(batch);
    open(batch);
    for (final KudoSlice slice : batch.slices(sliceBytes)) {
      append(slice);
    }
  }

  /** Hashes the batch's rows if the output has a row checksum, and releases them. */
  void hash(final KudoBatch batch) {
    batch.hash(null);
  }

  /** Waits until the batch is split. */
  abstract void open(KudoBatch batch);

  /**
   * Packs a batch into memory, or writes it to a file where that has no room.
   *
   * @param payload its blocks' bytes
   * @param toHost brings them to the host, for a file; closed here
   */
  final void append(
      final OutputBatch batch, final PackSource payload, final Supplier<HostTables> toHost)
      throws IOException {
    if (batch.isEmpty()) {
      return;
    }
    final PackSource headers = batch.headers();
    if (output.pack(
        memory -> {
          if (headers == null) {
            memory.append(payload);
          } else {
            memory.append(headers, payload);
          }
        })) {
      return;
    }
    try (HostTables tables = toHost.get()) {
      if (headers == null) {
        output.spill(tables.payload());
      } else {
        output.spill(headers, tables.payload());
      }
    }
  }

  /**
   * The row checksum of everything that was appended; 0 if none was asked for. To be called before
   * {@link #commit}, since it may fail.
   */
  public abstract long checksum();

  /**
   * Completes the output.
   *
   * @return the bytes of each partition, as stored
   */
  public final long[] commit() throws IOException {
    return output.commit();
  }

  /** Bytes that were to lie on the GPU and lie in host memory. */
  public final long overflowedBytes() {
    return output.overflowedBytes();
  }

  /** Bytes that went to temporary files. */
  public final long spilledBytes() {
    return output.spilledBytes();
  }

  @Override
  public void close() throws IOException {
    output.close();
  }
}
