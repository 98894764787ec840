package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.device.HostBuffer;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.format.TableAssembly;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Copies bytes of tables into RAPIDS' memory, in the order of the task's own stream. For one task's
 * thread.
 */
public interface TableGather extends AutoCloseable {

  /** Has everything that is gathered from now on wait until a block is there, if it is not. */
  void await(FetchedBlock block);

  /** Memory of this process of at least so many bytes from which it can gather. */
  HostBuffer hostBuffer(long bytes);

  /** Whether an extent lies in GPU memory. */
  boolean isOnDevice(FetchedBlock block, int extent);

  /** Whether it can gather an extent from where that lies. */
  boolean reaches(FetchedBlock block, int extent);

  /** Whether it can put tables together into one. */
  boolean canAssemble();

  /**
   * Brings tables right into the columns of one, at once.
   *
   * @param sources where each of them is
   * @param destination of the whole
   */
  void assemble(TableAssembly plan, long[] sources, long destination);

  /** Bytes and where they go, counted from the beginning of the destination. */
  record Piece(long source, long offset, long bytes) {}

  /** Brings bytes to a buffer. */
  void copy(List<Piece> pieces, DeviceMemoryBuffer to);

  /**
   * The CRC32C of what was brought to a buffer. Waits for that, and for them.
   *
   * @param addresses in that buffer
   * @return null if it cannot tell, as one whose blocks the host has verified
   */
  int @Nullable [] checksums(long[] addresses, long[] lengths);

  /** Waits until nothing is read any more of what was gathered. */
  void finish();

  /** Waits likewise, and ends it. */
  @Override
  void close();
}
