package io.zerohop.spark.rapids.write;

import java.io.IOException;

/**
 * Where the tables of one map task go. Belongs to the task's thread; {@link #close} frees what was
 * not committed.
 */
public interface TableSink extends AutoCloseable {

  /** Takes a batch, which may be cleared when this returns. */
  void append(OutputBatch batch) throws IOException;

  /**
   * The row checksum of everything that was appended; 0 if none was asked for. To be called before
   * {@link #commit}, since it may fail.
   */
  long checksum();

  /**
   * Completes the output.
   *
   * @return the bytes of each partition, as stored
   */
  long[] commit() throws IOException;

  /** Bytes that were to lie on the GPU and lie in host memory. */
  long deflectedBytes();

  /** Bytes that went to temporary files. */
  long spilledBytes();

  @Override
  void close() throws IOException;
}
