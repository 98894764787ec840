package io.zerohop.spark.rapids.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.Table;
import io.zerohop.spark.rapids.format.PackedColumns;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The rules of cudf that our code relies on. Runs with the fake here, and with cudf itself where
 * there is a GPU ({@code rapids.sh kudo}): it calls nothing that only one of them has.
 */
class CudfContractTest {
  private static final int ALIGNMENT = 64;

  private long before;

  @BeforeEach
  void remember() {
    before = Rmm.getTotalBytesAllocated();
  }

  @AfterEach
  void everythingIsGivenBack() {
    assertEquals(before, Rmm.getTotalBytesAllocated());
  }

  @Test
  void aBufferLivesAsLongAsAPartOfIt() {
    final DeviceMemoryBuffer whole = DeviceMemoryBuffer.allocate(1024);
    final DeviceMemoryBuffer part = whole.slice(256, 512);
    assertEquals(whole.getAddress() + 256, part.getAddress());
    assertEquals(512, part.getLength());
    assertEquals(2, whole.getRefCount());
    whole.close();
    assertTrue(Rmm.getTotalBytesAllocated() > before);
    part.close();
    assertEquals(0, whole.getRefCount());
  }

  @Test
  void whatIsClosedOnceTooOftenFails() {
    final DeviceMemoryBuffer buffer = DeviceMemoryBuffer.allocate(64);
    buffer.incRefCount();
    buffer.close();
    buffer.close();
    assertThrows(IllegalStateException.class, buffer::close);
    final ColumnVector column = ColumnVector.fromInts(1, 2);
    column.incRefCount();
    column.close();
    column.close();
    assertThrows(IllegalStateException.class, column::close);
  }

  @Test
  void aTableHoldsReferencesOnItsColumns() {
    try (ColumnVector column = ColumnVector.fromInts(1, 2, 3)) {
      try (Table table = new Table(column)) {
        assertEquals(2, column.getRefCount());
        assertEquals(3, table.getRowCount());
        assertEquals(1, table.getNumberOfColumns());
      }
      assertEquals(1, column.getRefCount());
    }
  }

  @Test
  void bytesGoToTheGpuAndBack() {
    try (HostMemoryBuffer there = HostMemoryBuffer.allocate(256);
        HostMemoryBuffer back = HostMemoryBuffer.allocate(128);
        DeviceMemoryBuffer onGpu = DeviceMemoryBuffer.allocate(128)) {
      for (int i = 0; i < 32; i++) {
        there.setLong(8L * i, 1000 + i);
      }
      onGpu.copyFromHostBuffer(there, 64, 128);
      try (DeviceMemoryBuffer half = onGpu.slice(64, 64);
          HostMemoryBuffer to = back.slice(64, 64)) {
        to.copyFromDeviceBuffer(half);
      }
      assertEquals(1000 + 8 + 8, back.getLong(64));
      assertEquals(1000 + 8 + 15, back.getLong(120));
    }
  }

  @Test
  void columnsSayWhetherTheyHaveNulls() {
    try (ColumnVector without = ColumnVector.fromInts(1, 2);
        ColumnVector with = ColumnVector.fromBoxedInts(1, null, 3);
        ColumnVector text = ColumnVector.fromStrings("a", null, "", "é漢x")) {
      assertFalse(without.hasValidityVector());
      assertEquals(0, without.getNullCount());
      assertTrue(with.hasValidityVector());
      assertEquals(1, with.getNullCount());
      assertEquals(List.of("1,", "null,", "3,"), GpuTables.rows(with));
      assertEquals(List.of("\"a\",", "null,", "\"\",", "\"é漢x\","), GpuTables.rows(text));
    }
  }

  private static Table table(final List<Kind> kinds, final long seed, final int rows) {
    return GpuTables.random(new Random(seed), kinds, rows, 0.3);
  }

  private static byte[] metadata(final ContiguousTable table) {
    final ByteBuffer metadata = table.getMetadataDirectBuffer();
    final byte[] bytes = new byte[metadata.remaining()];
    metadata.duplicate().get(bytes);
    return bytes;
  }

  private static void close(final ContiguousTable... tables) {
    for (final ContiguousTable table : tables) {
      table.close();
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void theBytesOfAPackedTableAreATableElsewhere(final Kind kind) {
    try (Table table = table(List.of(kind, Kind.INT), 5, 100)) {
      final List<String> rows = GpuTables.rows(table);
      final ContiguousTable[] parts = table.contiguousSplit(10, 10, 71);
      assertEquals(4, parts.length);
      assertEquals(0, parts[1].getRowCount());
      final List<String> found = new ArrayList<>();
      for (final ContiguousTable part : parts) {
        if (part.getRowCount() > 0) {
          found.addAll(rowsOfCopy(part));
        }
      }
      close(parts);
      assertEquals(rows, found);
    }
  }

  /** Rows of a table that is made of copies of another's bytes. */
  private static List<String> rowsOfCopy(final ContiguousTable table) {
    final long length = table.getBuffer().getLength();
    final byte[] described = metadata(table);
    final ByteBuffer metadata = ByteBuffer.allocateDirect(described.length);
    metadata.put(described).flip();
    final Table copy;
    try (HostMemoryBuffer onHost = HostMemoryBuffer.allocate(length);
        DeviceMemoryBuffer memory = DeviceMemoryBuffer.allocate(length + 256)) {
      onHost.copyFromDeviceBuffer(table.getBuffer());
      try (DeviceMemoryBuffer part = memory.slice(256, length)) {
        part.copyFromHostBuffer(onHost, 0, length);
        copy = Table.fromPackedTable(metadata, part);
      }
    }
    try (copy) {
      return GpuTables.rows(copy); // It holds references on the memory that was closed here.
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void theMetadataOfAPackedTableSaysWhereItsColumnsLie(final Kind kind) {
    try (Table table = table(List.of(Kind.LONG, kind), 9, 90)) {
      final ContiguousTable[] parts = table.contiguousSplit(33);
      for (final ContiguousTable part : parts) {
        final PackedColumns columns = PackedColumns.parse(metadata(part));
        assertNotNull(columns, "the layout is the one that is known");
        assertEquals(2, columns.columns());
        assertEquals(part.getRowCount(), columns.rows(0));
        assertTrue(columns.fits(part.getBuffer().getLength(), new int[0]));
        assertEquals(0, part.getBuffer().getLength() % ALIGNMENT);
        for (int entry = 0; entry < columns.entries(); entry++) {
          assertTrue(columns.data(entry) < 0 || columns.data(entry) % ALIGNMENT == 0);
          assertTrue(columns.mask(entry) < 0 || columns.mask(entry) % ALIGNMENT == 0);
          assertTrue(columns.nulls(entry) >= 0, "nulls are counted");
        }
        assertEquals(
            GpuTables.nestedOffsets(kind), columns.bounded().size(), "columns with offsets");
      }
      close(parts);
    }
  }

  @Test
  void offsetsOfPackedTablesBeginAtZero() {
    try (ColumnVector texts = ColumnVector.fromStrings("abc", "de", "", "fghi");
        Table table = new Table(texts)) {
      final ContiguousTable[] parts = table.contiguousSplit(1);
      final PackedColumns columns = PackedColumns.parse(metadata(parts[1]));
      try (HostMemoryBuffer bytes = HostMemoryBuffer.allocate(parts[1].getBuffer().getLength())) {
        bytes.copyFromDeviceBuffer(parts[1].getBuffer());
        final long offsets = columns.data(columns.bounded().get(0) + 1);
        assertEquals(0, bytes.getInt(offsets));
        assertEquals(2, bytes.getInt(offsets + 4));
        assertEquals(6, bytes.getInt(offsets + 12));
        assertEquals('d', bytes.getByte(columns.data(0)));
      }
      close(parts);
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void tablesAreConcatenatedInTheirOrder(final Kind kind) {
    try (Table one = table(List.of(kind), 1, 40);
        Table other = GpuTables.random(new Random(2), List.of(kind), 25, 0);
        Table both = Table.concatenate(one, other)) {
      final List<String> expected = new ArrayList<>(GpuTables.rows(one));
      expected.addAll(GpuTables.rows(other));
      assertEquals(expected, GpuTables.rows(both));
    }
  }
}
