package com.nvidia.spark.rapids.jni.kudo;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.KudoReader;
import ai.rapids.cudf.KudoWriter;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.List;

/** As RAPIDS'. */
public final class KudoGpuSerializer {
  private KudoGpuSerializer() {}

  /**
   * Makes a block of each partition.
   *
   * @param splits first row of each partition but the first
   * @return the blocks, one behind the other, and where each begins and the last one ends
   */
  public static DeviceMemoryBuffer[] splitAndSerializeToDevice(
      final Table table, final int... splits) {
    final KudoWriter writer = new KudoWriter(table.types(), table.values());
    final long[] ends = new long[splits.length + 2];
    for (int i = 0; i <= splits.length; i++) {
      final int from = i == 0 ? 0 : splits[i - 1];
      ends[i + 1] = writer.append(from, i == splits.length ? (int) table.getRowCount() : splits[i]);
    }
    final DeviceMemoryBuffer blocks = put(writer.bytes());
    boolean done = false;
    try {
      final ByteBuffer list =
          ByteBuffer.allocate(Long.BYTES * ends.length).order(ByteOrder.nativeOrder());
      list.asLongBuffer().put(ends);
      final DeviceMemoryBuffer offsets = put(list.array());
      done = true;
      return new DeviceMemoryBuffer[] {blocks, offsets};
    } finally {
      if (!done) {
        blocks.close();
      }
    }
  }

  private static DeviceMemoryBuffer put(final byte[] bytes) {
    try (HostMemoryBuffer host = HostMemoryBuffer.allocate(Math.max(1, bytes.length))) {
      for (int i = 0; i < bytes.length; i++) {
        host.setByte(i, bytes[i]);
      }
      final DeviceMemoryBuffer memory = DeviceMemoryBuffer.allocate(bytes.length);
      memory.copyFromHostBuffer(host, 0, bytes.length);
      return memory;
    }
  }

  private static byte[] get(final DeviceMemoryBuffer memory) {
    final byte[] bytes = new byte[(int) memory.getLength()];
    try (HostMemoryBuffer host = HostMemoryBuffer.allocate(bytes.length)) {
      host.copyFromDeviceBuffer(memory);
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] = host.getByte(i);
      }
    }
    return bytes;
  }

  /**
   * Makes one table of blocks.
   *
   * @param offsets where each block begins and the last one ends
   */
  public static Table assembleFromDeviceRaw(
      final Schema schema, final DeviceMemoryBuffer blocks, final DeviceMemoryBuffer offsets) {
    final KudoReader reader = new KudoReader(schema.columns(), get(blocks));
    final LongBuffer list =
        ByteBuffer.wrap(get(offsets)).order(ByteOrder.nativeOrder()).asLongBuffer();
    for (int i = 0; i + 1 < list.limit(); i++) {
      reader.read((int) list.get(i), (int) list.get(i + 1));
    }
    final List<DataType> types = new ArrayList<>(reader.types());
    return Table.of(types, reader.values());
  }
}
