package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.spark.rapids.api.RapidsClasses;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Puts blocks of RAPIDS' GPU serializer together: they are gathered into one buffer, with a list of
 * where each begins, and RAPIDS makes one table of all of them. For one task's thread.
 */
final class KudoAssembly {
  private final RapidsClasses rapids;
  private final TableGather gather;
  private final DataType[] types;
  private final Runnable check;
  private final long bytesPerBlock;
  private Schema schema;

  /**
   * @param types of the columns
   * @param check throws if an owner may have freed blocks before they were gathered; does not wait
   */
  KudoAssembly(
      final RapidsClasses rapids,
      final TableGather gather,
      final DataType[] types,
      final Runnable check) {
    this.rapids = rapids;
    this.gather = gather;
    this.types = types;
    this.check = check;
    this.bytesPerBlock = Long.BYTES + 256L * columns(types);
  }

  /**
   * What RAPIDS takes in GPU memory for each block while it puts blocks together, beside their
   * bytes: some 250 bytes a column, by its source.
   */
  long bytesPerBlock() {
    return bytesPerBlock;
  }

  /** With those that are nested in others. */
  private static int columns(final DataType... of) {
    int columns = of.length;
    for (final DataType type : of) {
      if (type instanceof ArrayType array) {
        columns += columns(array.elementType());
      } else if (type instanceof MapType map) {
        columns += 1 + columns(map.keyType(), map.valueType());
      } else if (type instanceof StructType struct) {
        for (final StructField field : struct.fields()) {
          columns += columns(field.dataType());
        }
      }
    }
    return columns;
  }

  /**
   * Makes one table of blocks, in their order. Blocks must stay readable until the gather has
   * finished.
   */
  Table assemble(final long[] addresses, final long[] lengths) {
    if (schema == null) {
      schema = rapids.schema(types);
    }
    long bytes = 0;
    for (final long length : lengths) {
      bytes += length;
    }
    final long total = bytes;
    final long listBytes = Long.BYTES * (lengths.length + 1L);
    try (DeviceMemoryBuffer blocks = rapids.withRetry(() -> DeviceMemoryBuffer.allocate(total));
        DeviceMemoryBuffer list = rapids.withRetry(() -> DeviceMemoryBuffer.allocate(listBytes))) {
      gather.copy(pieces(addresses, lengths), blocks);
      put(lengths, list);
      check.run(); // Behind the gather, which that has waited for: blocks say how they are read.
      return rapids.withRetry(() -> KudoGpuSerializer.assembleFromDeviceRaw(schema, blocks, list));
    }
  }

  /** Writes where each block begins, and where the last one ends. */
  private void put(final long[] lengths, final DeviceMemoryBuffer list) {
    final long bytes = list.getLength();
    try (HostMemoryBuffer host = rapids.withRetry(() -> HostMemoryBuffer.allocate(bytes))) {
      long end = 0;
      for (int i = 0; i < lengths.length; i++) {
        Platform.putLong(null, host.getAddress() + (long) Long.BYTES * i, end);
        end += lengths[i];
      }
      Platform.putLong(null, host.getAddress() + (long) Long.BYTES * lengths.length, end);
      list.copyFromHostBuffer(host, 0, bytes); // Waits for the thread's stream.
    }
  }

  private static List<TableGather.Piece> pieces(final long[] addresses, final long[] lengths) {
    final List<TableGather.Piece> pieces = new ArrayList<>(lengths.length);
    long at = 0;
    for (int i = 0; i < lengths.length; i++) {
      pieces.add(new TableGather.Piece(addresses[i], at, lengths[i]));
      at += lengths[i];
    }
    return pieces;
  }
}
