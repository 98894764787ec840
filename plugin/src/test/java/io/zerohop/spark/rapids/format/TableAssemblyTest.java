package io.zerohop.spark.rapids.format;

import static io.zerohop.spark.rapids.format.PackedTableMaker.BOOL;
import static io.zerohop.spark.rapids.format.PackedTableMaker.INT16;
import static io.zerohop.spark.rapids.format.PackedTableMaker.INT64;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.host.HostDevice;
import io.zerohop.spark.rapids.format.PackedColumns.PackedHeader;
import io.zerohop.spark.rapids.format.PackedTableMaker.Kind;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.Test;

/** Tables that are put together without cudf, read back value by value. */
class TableAssemblyTest {
  private static final int TABLE_BYTES = 1 << 18;

  /** Fields of an entry of cudf's metadata. */
  private static final int ROWS = 8;

  private static final int CHILDREN = 32;
  private static final List<Kind> KINDS =
      List.of(
          Kind.of(INT64, false),
          Kind.of(INT64, true),
          Kind.of(BOOL, true),
          Kind.of(INT16, false),
          Kind.of(PackedColumns.STRING, false),
          Kind.of(PackedColumns.STRING, true),
          Kind.of(PackedColumns.LIST, true, Kind.of(PackedColumns.STRING, true)),
          Kind.of(
              PackedColumns.LIST, false, Kind.of(PackedColumns.LIST, true, Kind.of(INT16, true))),
          Kind.of(
              PackedColumns.STRUCT,
              true,
              Kind.of(INT16, true),
              Kind.of(PackedColumns.STRING, false),
              Kind.of(PackedColumns.LIST, false, Kind.of(INT64, false))));

  private final List<PackedTable> tables = new ArrayList<>();
  private final List<byte[]> bytes = new ArrayList<>();
  private final List<List<Object>> expected = new ArrayList<>();

  /** As the cudf of this test packs them. */
  private PackedHeader header = PackedHeader.COUNTS;

  private void make(final Random random, final List<Kind> kinds, final int rows) {
    final List<List<Object>> columns = new ArrayList<>();
    for (int i = 0; i < kinds.size(); i++) {
      final List<Object> column = new ArrayList<>();
      for (int row = 0; row < rows; row++) {
        column.add(PackedTableMaker.value(random, kinds.get(i)));
      }
      columns.add(column);
      if (expected.size() == i) {
        expected.add(new ArrayList<>());
      }
      expected.get(i).addAll(column);
    }
    final ByteBuffer packed = ByteBuffer.allocate(TABLE_BYTES);
    tables.add(PackedTableMaker.pack(header, kinds, columns, packed));
    bytes.add(packed.array());
  }

  /** Puts the tables together and reads them; null if that cannot be done. */
  private List<List<Object>> together() {
    final TableAssembly plan = TableAssembly.plan(tables);
    if (plan == null) {
      return null;
    }
    try (HostDevice device = new HostDevice();
        Segment sources = device.allocate((long) TABLE_BYTES * tables.size());
        Segment result = device.allocate(plan.bytes());
        CopyStream stream = device.openStream("assembly")) {
      final long[] addresses = new long[tables.size()];
      for (int i = 0; i < addresses.length; i++) {
        addresses[i] = sources.address() + (long) i * TABLE_BYTES;
        Platform.copyMemory(
            bytes.get(i), Platform.BYTE_ARRAY_OFFSET, null, addresses[i], TABLE_BYTES);
      }
      Platform.setMemory(result.address(), (byte) 0xa5, plan.bytes());
      final CopyBatch copy = stream.newBatch();
      final SpliceBatch splice = new SpliceBatch();
      plan.fill(addresses, result.address(), copy, splice);
      stream.submit(copy);
      stream.submit(splice);
      stream.synchronize(Duration.ofSeconds(20));
      final byte[] whole = new byte[(int) plan.bytes()];
      Platform.copyMemory(null, result.address(), whole, Platform.BYTE_ARRAY_OFFSET, whole.length);
      final byte[] metadata = new byte[plan.metadata().remaining()];
      plan.metadata().get(metadata);
      return PackedTableMaker.read(PackedColumns.parse(metadata), ByteBuffer.wrap(whole));
    }
  }

  @Test
  void whatIsPackedIsRead() {
    make(new Random(1), KINDS, 200);
    final List<List<Object>> read =
        PackedTableMaker.read(
            PackedColumns.parse(tables.get(0).metadata()), ByteBuffer.wrap(bytes.get(0)));
    assertThat(read).isEqualTo(expected);
  }

  @Test
  void tablesOfAnyLengthBecomeOne() {
    final Random random = new Random(2);
    for (int round = 0; round < 60; round++) {
      header = round % 2 == 0 ? PackedHeader.COUNTS : PackedHeader.STUB;
      tables.clear();
      bytes.clear();
      expected.clear();
      final int count = 2 + random.nextInt(20);
      for (int i = 0; i < count; i++) {
        // The first has items in every list, most others a few rows, down to one.
        make(random, KINDS, i == 0 ? 100 : 1 + random.nextInt(round < 30 ? 4 : 300));
      }
      assertThat(together()).isEqualTo(expected);
    }
  }

  @Test
  void theMetadataOfTheWholeIsThatOfTheSameCudf() {
    for (final PackedHeader each : PackedHeader.values()) {
      header = each;
      tables.clear();
      make(new Random(7), KINDS, 20);
      make(new Random(8), KINDS, 20);
      final ByteBuffer whole = TableAssembly.plan(tables).metadata();
      assertThat(PackedHeader.of(whole.remaining())).isEqualTo(each);
      assertThat(PackedColumns.parse(tables.get(0).metadata()).columns()).isEqualTo(KINDS.size());
    }
  }

  @Test
  void tablesOfTwoCudfsAreLeftAlone() {
    make(new Random(7), KINDS, 20);
    header = PackedHeader.STUB;
    make(new Random(8), KINDS, 20);
    assertThat(TableAssembly.plan(tables)).isNull();
  }

  @Test
  void aStubOfAnotherKindIsNotTakenForOne() {
    header = PackedHeader.STUB;
    make(new Random(10), KINDS, 20);
    final byte[] good = tables.get(0).metadata();
    assertThat(PackedColumns.parse(good).columns()).isEqualTo(KINDS.size());
    for (final int at : new int[] {0, 8, 16, 24, 32}) {
      final byte[] other = good.clone();
      other[at]++;
      assertThat(PackedColumns.parse(other)).as("byte %s", at).isNull();
    }
  }

  @Test
  void columnsThatDoNotLieWithinTheirTableAreNoticed() {
    make(new Random(6), KINDS, 50);
    final PackedTable table = tables.get(0);
    final PackedColumns columns = PackedColumns.parse(table.metadata());
    assertThat(columns.fits(table.bytes(), table.bounds())).isTrue();
    assertThat(columns.fits(table.bytes() - 1, table.bounds())).isFalse();
    final int[] bounds = table.bounds().clone();
    bounds[1] = (int) table.bytes();
    assertThat(columns.fits(table.bytes(), bounds)).isFalse();
  }

  /** The first table with another number in the metadata of an entry. */
  private PackedTable changed(final int entry, final int field, final int value) {
    final PackedTable good = tables.get(0);
    final byte[] metadata = good.metadata().clone();
    ByteBuffer.wrap(metadata)
        .order(ByteOrder.nativeOrder())
        .putInt(PackedTableMaker.entryOffset(entry) + field, value);
    return new PackedTable(good.rows(), metadata, good.bytes(), good.bounds());
  }

  @Test
  void whatIsBelowAColumnHasTheRowsThatItReads() {
    make(new Random(6), KINDS, 50);
    assertThat(PackedColumns.isDamaged(tables.get(0))).isFalse();
    final PackedColumns columns = PackedColumns.parse(tables.get(0).metadata());
    int below = 0;
    for (int entry = 0; entry < columns.entries(); entry++) {
      final boolean nested =
          columns.type(entry) == PackedColumns.STRUCT
              || columns.type(entry) == PackedColumns.LIST
              || columns.type(entry) == PackedColumns.STRING;
      int child = entry + 1;
      for (int i = 0; nested && i < columns.children(entry); i++, child = columns.end(child)) {
        final int shorter = columns.rows(child) - 1;
        assertThat(PackedColumns.isDamaged(changed(child, ROWS, shorter)))
            .as("entry %s below %s", child, entry)
            .isTrue();
        below++;
      }
    }
    assertThat(below).isGreaterThan(10);
    final int list = columns.entries() - 3; // The last field, its offsets, and its items.
    assertThat(columns.type(list)).isEqualTo(PackedColumns.LIST);
    assertThat(PackedColumns.isDamaged(changed(list, CHILDREN, 1))).isTrue();
  }

  @Test
  void metadataThatDoesNotParseIsDamaged() {
    make(new Random(6), KINDS, 50);
    final PackedTable table = tables.get(0);
    final int last = PackedColumns.parse(table.metadata()).entries() - 1;
    final PackedTable other = changed(last, CHILDREN, 1);
    assertThat(PackedColumns.parse(other.metadata())).isNull();
    assertThat(PackedColumns.isDamaged(other)).isTrue();
    assertThat(PackedColumns.isDamaged(new PackedTable(5, new byte[0], 0, new int[0]))).isFalse();
    PackedColumns.trust(false);
    try {
      assertThat(PackedColumns.isDamaged(other)).as("it may be of another cudf").isFalse();
    } finally {
      PackedColumns.trust(true);
    }
  }

  @Test
  void aTableThatIsNestedDeeplyIsLeftToCudf() {
    final PackedTable deep = nested(300);
    assertThat(PackedColumns.parse(deep.metadata())).isNull();
    assertThat(PackedColumns.isDamaged(deep)).isFalse();
    final byte[] other = deep.metadata().clone();
    ByteBuffer.wrap(other)
        .order(ByteOrder.nativeOrder())
        .putInt(PackedTableMaker.entryOffset(299) + ROWS, 1);
    assertThat(PackedColumns.isDamaged(new PackedTable(7, other, deep.bytes(), new int[0])))
        .isTrue();
    assertThat(PackedColumns.isDamaged(nested(10_000))).isTrue();
  }

  /** A number in so many structs. */
  private static PackedTable nested(final int structs) {
    final int rows = 7;
    final ByteBuffer metadata =
        ByteBuffer.allocate(PackedHeader.COUNTS.bytes(structs + 1)).order(ByteOrder.nativeOrder());
    PackedHeader.COUNTS.put(metadata, 1, 1, rows);
    for (int i = 0; i < structs; i++) {
      PackedColumns.put(metadata, PackedColumns.STRUCT, 0, rows, 0, -1, -1, 1);
    }
    PackedColumns.put(metadata, INT64, 0, rows, 0, 0, -1, 0);
    return new PackedTable(rows, metadata.array(), 64, new int[0]);
  }

  @Test
  void columnsWithoutAnyItemAreLeftToCudf() {
    final List<Kind> kinds = List.of(Kind.of(PackedColumns.LIST, false, Kind.of(INT64, false)));
    for (int i = 0; i < 2; i++) {
      final ByteBuffer packed = ByteBuffer.allocate(TABLE_BYTES);
      tables.add(PackedTableMaker.pack(kinds, List.of(List.of(List.of())), packed));
      bytes.add(packed.array());
    }
    assertThat(together()).isNull();
  }

  @Test
  void whatIsNotKnownIsLeftToCudf() {
    make(new Random(3), KINDS, 10);
    make(new Random(4), KINDS, 10);
    final PackedTable good = tables.get(1);
    final int columns = PackedColumns.parse(good.metadata()).entries();
    for (int entry = 0; entry < columns; entry++) {
      final byte[] other = good.metadata().clone();
      other[PackedTableMaker.entryOffset(entry)] = 22; // A dictionary.
      tables.set(1, new PackedTable(good.rows(), other, good.bytes(), good.bounds()));
      assertThat(together()).isNull();
    }
    for (int length = 0; length < good.metadata().length; length++) {
      assertThat(PackedColumns.parse(java.util.Arrays.copyOf(good.metadata(), length))).isNull();
    }
    tables.set(1, new PackedTable(good.rows(), good.metadata(), good.bytes(), new int[0]));
    assertThat(together()).isNull();
    make(new Random(5), KINDS.subList(0, 3), 10);
    tables.remove(1);
    assertThat(together()).isNull();
  }
}
