package io.zerohop.spark.rapids.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.spark.rapids.format.KudoLayout;
import io.zerohop.spark.rapids.format.KudoLayout.KudoBlock;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import io.zerohop.spark.rapids.write.KudoBatch.KudoSizes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The same for RAPIDS' GPU serializer: see {@link CudfContractTest}. */
class KudoContractTest {
  private static final int[] SPLITS = {17, 17, 40, 41};
  private static final int ROWS = 60;

  private long before;

  @BeforeEach
  void remember() {
    before = Rmm.getTotalBytesAllocated();
  }

  @AfterEach
  void everythingIsGivenBack() {
    assertEquals(before, Rmm.getTotalBytesAllocated());
  }

  /** Blocks on the host, of which each has some rows. */
  private record Block(byte[] bytes, List<String> rows) {}

  private static List<Block> split(final Table table) {
    final List<String> rows = GpuTables.rows(table);
    final DeviceMemoryBuffer[] split = KudoGpuSerializer.splitAndSerializeToDevice(table, SPLITS);
    final List<Block> found = new ArrayList<>();
    try (DeviceMemoryBuffer blocks = split[0];
        DeviceMemoryBuffer offsets = split[1];
        HostMemoryBuffer bytes = HostMemoryBuffer.allocate(blocks.getLength());
        HostMemoryBuffer list = HostMemoryBuffer.allocate(offsets.getLength())) {
      assertEquals(2, split.length);
      assertEquals(8L * (SPLITS.length + 2), offsets.getLength());
      bytes.copyFromDeviceBuffer(blocks);
      list.copyFromDeviceBuffer(offsets);
      assertEquals(0, list.getLong(0));
      for (int i = 0; i <= SPLITS.length; i++) {
        final long from = list.getLong(8L * i);
        final byte[] block = new byte[(int) (list.getLong(8L * (i + 1)) - from)];
        for (int at = 0; at < block.length; at++) {
          block[at] = bytes.getByte(from + at);
        }
        final int first = i == 0 ? 0 : SPLITS[i - 1];
        found.add(new Block(block, rows.subList(first, i == SPLITS.length ? ROWS : SPLITS[i])));
      }
    }
    return found;
  }

  private static Table assemble(final Schema schema, final List<Block> blocks) {
    final long bytes = blocks.stream().mapToLong(block -> block.bytes().length).sum();
    final long listBytes = 8L * (blocks.size() + 1);
    try (HostMemoryBuffer host = HostMemoryBuffer.allocate(bytes);
        HostMemoryBuffer list = HostMemoryBuffer.allocate(listBytes);
        DeviceMemoryBuffer there = DeviceMemoryBuffer.allocate(bytes);
        DeviceMemoryBuffer offsets = DeviceMemoryBuffer.allocate(listBytes)) {
      long at = 0;
      for (int i = 0; i < blocks.size(); i++) {
        list.setLong(8L * i, at);
        for (final byte one : blocks.get(i).bytes()) {
          host.setByte(at++, one);
        }
      }
      list.setLong(8L * blocks.size(), at);
      there.copyFromHostBuffer(host, 0, bytes);
      offsets.copyFromHostBuffer(list, 0, listBytes);
      return KudoGpuSerializer.assembleFromDeviceRaw(schema, there, offsets);
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void blocksOfManyTablesBecomeOneTable(final Kind kind) {
    final List<Kind> kinds = List.of(kind, Kind.INT, kind);
    final List<Block> blocks = new ArrayList<>();
    for (final double nulls : new double[] {0.3, 0, 1}) {
      try (Table table = GpuTables.random(new Random(3), kinds, ROWS, nulls)) {
        blocks.addAll(split(table));
      }
    }
    blocks.removeIf(block -> block.rows().isEmpty());
    Collections.shuffle(blocks, new Random(4));
    final List<String> expected = new ArrayList<>();
    blocks.forEach(block -> expected.addAll(block.rows()));
    try (Table whole = assemble(GpuTables.schema(kinds), blocks)) {
      assertEquals(expected, GpuTables.rows(whole));
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void aBlockIsAsLongAsItsHeaderSays(final Kind kind) throws IOException {
    try (Table table = GpuTables.random(new Random(5), List.of(kind, Kind.LONG), ROWS, 0.3)) {
      for (final Block block : split(table)) {
        if (!block.rows().isEmpty()) {
          final ByteBuffer bytes = ByteBuffer.wrap(block.bytes());
          assertTrue(KudoBlock.begins(bytes.getInt(0)));
          assertEquals(block.bytes().length, KudoBlock.length(bytes));
          assertEquals(block.rows().size(), bytes.getInt(8));
        }
      }
    }
  }

  @Test
  void whatPartitionsWouldTakeAsPackedTablesIsReckonedExactly() {
    final List<Kind> kinds = List.of(Kind.LONG, Kind.INT, Kind.BOOLEAN, Kind.DOUBLE);
    try (Table table = GpuTables.random(new Random(6), kinds, ROWS, 0.3)) {
      final int[] firstRows = new int[SPLITS.length + 2];
      System.arraycopy(SPLITS, 0, firstRows, 1, SPLITS.length);
      firstRows[SPLITS.length + 1] = ROWS;
      final int[] starts = new int[SPLITS.length + 2];
      final List<Block> blocks = split(table);
      for (int i = 0; i < blocks.size(); i++) {
        starts[i + 1] = starts[i] + blocks.get(i).bytes().length;
      }
      final ColumnVector[] columns = new ColumnVector[kinds.size()];
      Arrays.setAll(columns, table::getColumn);
      final long[] packed = KudoSizes.of(columns).packed(new KudoLayout(firstRows, starts));
      final ContiguousTable[] tables = table.contiguousSplit(SPLITS);
      for (int i = 0; i < tables.length; i++) {
        final DeviceMemoryBuffer memory = tables[i].getBuffer();
        assertEquals(memory == null ? 0 : memory.getLength(), packed[i]);
        tables[i].close();
      }
    }
  }
}
