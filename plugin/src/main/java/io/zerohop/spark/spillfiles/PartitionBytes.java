package io.zerohop.spark.spillfiles;

import java.io.IOException;
import java.io.OutputStream;

/** Source of the plain bytes of a map output's partitions, for writing a file. */
@FunctionalInterface
public interface PartitionBytes {

  /** Writes all bytes of one partition; nothing for an empty one. Leaves the stream open. */
  void writeTo(int partition, OutputStream out) throws IOException;
}
