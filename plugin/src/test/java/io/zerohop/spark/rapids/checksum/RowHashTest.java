package io.zerohop.spark.rapids.checksum;

import static io.zerohop.spark.rapids.format.PackedTableMaker.BOOL;
import static io.zerohop.spark.rapids.format.PackedTableMaker.INT16;
import static io.zerohop.spark.rapids.format.PackedTableMaker.INT64;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Segment;
import io.zerohop.device.host.HostDevice;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.format.PackedColumns;
import io.zerohop.spark.rapids.format.PackedTableMaker;
import io.zerohop.spark.rapids.format.PackedTableMaker.Kind;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The checksum of a map output follows its rows and their partitions, and nothing else. */
class RowHashTest {
  private static final int TABLE_BYTES = 1 << 16;
  private static final int MAX_TABLES = 1_000;
  private static final int PARTITIONS = 5;
  private static final List<Kind> KINDS =
      List.of(
          Kind.of(INT64, true),
          Kind.of(BOOL, true),
          Kind.of(INT16, false),
          Kind.of(PackedColumns.STRING, true),
          Kind.of(PackedColumns.LIST, true, Kind.of(PackedColumns.STRING, true)),
          Kind.of(
              PackedColumns.STRUCT,
              true,
              Kind.of(INT16, true),
              Kind.of(PackedColumns.LIST, false, Kind.of(INT64, true))));

  private final HostDevice device = new HostDevice();
  private final Segment segment = device.allocate((long) TABLE_BYTES * MAX_TABLES);
  private final TaskStream stream = new TaskStream(() -> device.openStream("row hash"));
  private final Random random = new Random(8);
  private int tables;

  @AfterEach
  void nothingIsLeftOpen() {
    stream.close();
    segment.close();
    assertThat(device.openResources()).isZero();
    device.close();
  }

  private RowHash newHash(final long attempt) {
    return new RowHash(PARTITIONS, stream, device::hostBuffer, Duration.ofSeconds(20), attempt);
  }

  private List<Object> row() {
    final List<Object> row = new ArrayList<>();
    KINDS.forEach(kind -> row.add(PackedTableMaker.value(random, kind)));
    return row;
  }

  /** Rows of each partition. */
  private List<List<List<Object>>> output(final int rows) {
    final List<List<List<Object>>> output = new ArrayList<>();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      output.add(new ArrayList<>());
    }
    for (int i = 0; i < rows; i++) {
      output.get(random.nextInt(PARTITIONS - 1)).add(row()); // The last one stays empty.
    }
    return output;
  }

  private static List<List<List<Object>>> copy(final List<List<List<Object>>> output) {
    final List<List<List<Object>>> copy = new ArrayList<>();
    for (final List<List<Object>> partition : output) {
      copy.add(new ArrayList<>());
      partition.forEach(row -> copy.get(copy.size() - 1).add(new ArrayList<>(row)));
    }
    return copy;
  }

  /** The checksum of an output that is cut into tables of at most so many rows. */
  private long hash(final List<List<List<Object>>> output, final int mostRows) {
    tables = 0;
    try (RowHash hash = newHash(1)) {
      for (int partition = 0; partition < PARTITIONS; partition++) {
        final List<List<Object>> rows = output.get(partition);
        for (int from = 0; from < rows.size(); ) {
          final int end = Math.min(rows.size(), from + 1 + random.nextInt(mostRows));
          add(hash, partition, rows.subList(from, end));
          from = end;
          if (random.nextInt(3) == 0) {
            hash.launch();
          }
        }
      }
      hash.launch();
      return hash.value();
    }
  }

  private void add(final RowHash hash, final int partition, final List<List<Object>> rows) {
    final byte[] bytes = new byte[TABLE_BYTES];
    random.nextBytes(bytes); // What lies between columns.
    final PackedTable table = PackedTableMaker.pack(KINDS, columns(rows), ByteBuffer.wrap(bytes));
    scrambleNulls(PackedColumns.parse(table.metadata()), bytes);
    final long address = segment.address() + (long) TABLE_BYTES * tables++;
    Platform.copyMemory(bytes, Platform.BYTE_ARRAY_OFFSET, null, address, TABLE_BYTES);
    hash.add(partition, rows.size(), table.metadata(), address);
  }

  private static List<List<Object>> columns(final List<List<Object>> rows) {
    final List<List<Object>> columns = new ArrayList<>();
    for (int column = 0; column < KINDS.size(); column++) {
      final int at = column;
      columns.add(new ArrayList<>(rows.stream().map(row -> row.get(at)).toList()));
    }
    return columns;
  }

  private void scrambleNulls(final PackedColumns columns, final byte[] bytes) {
    final ByteBuffer table = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
    for (int entry = 0; entry < columns.entries(); entry++) {
      final int width = PackedColumns.width(columns.type(entry));
      final int mask = (int) columns.mask(entry);
      for (int row = 0; width > 0 && mask >= 0 && row < columns.rows(entry); row++) {
        if ((table.getInt(mask + row / 32 * 4) >>> row & 1) == 0) {
          table.put((int) columns.data(entry) + row * width, (byte) random.nextInt());
        }
      }
    }
  }

  @Test
  void neitherOrderNorTablesNorBytesBetweenThemMatter() {
    for (int round = 0; round < 20; round++) {
      final List<List<List<Object>>> output = output(1 + random.nextInt(150));
      final long expected = hash(output, 1_000);
      assertThat(expected).isNotZero();
      for (final int mostRows : new int[] {1, 4, 60}) {
        output.forEach(rows -> Collections.shuffle(rows, random));
        assertThat(hash(output, mostRows)).isEqualTo(expected);
      }
    }
  }

  @Test
  void everyValueMatters() {
    final List<List<List<Object>>> output = output(30);
    final Set<Long> seen = new HashSet<>();
    assertThat(seen.add(hash(output, 10))).isTrue();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      for (int row = 0; row < output.get(partition).size(); row++) {
        for (int column = 0; column < KINDS.size(); column++) {
          final List<List<List<Object>>> other = copy(output);
          other
              .get(partition)
              .get(row)
              .set(column, changed(KINDS.get(column), other, partition, row));
          assertThat(seen.add(hash(other, 10))).as("row %d, column %d", row, column).isTrue();
        }
      }
    }
  }

  /** Another value than there is; null becomes something, and something null where it may. */
  private Object changed(
      final Kind kind, final List<List<List<Object>>> output, final int partition, final int row) {
    final Object before = output.get(partition).get(row).get(KINDS.indexOf(kind));
    Object after = before != null && kind.nullable() ? null : before;
    while (java.util.Objects.equals(before, after)) {
      after = PackedTableMaker.value(random, kind);
    }
    return after;
  }

  @Test
  void partitionsAndNumbersOfRowsMatter() {
    final List<List<List<Object>>> output = output(40);
    final Set<Long> seen = new HashSet<>(Set.of(hash(output, 10)));
    final List<List<List<Object>>> moved = copy(output);
    moved.get(PARTITIONS - 1).add(moved.get(0).remove(0));
    assertThat(seen.add(hash(moved, 10))).isTrue();
    final List<List<List<Object>>> swapped = copy(output);
    Collections.swap(swapped, 0, 1);
    assertThat(seen.add(hash(swapped, 10))).isTrue();
    final List<List<List<Object>>> lost = copy(output);
    lost.get(1).remove(0);
    assertThat(seen.add(hash(lost, 10))).isTrue();
    for (int copies = 1; copies < 4; copies++) {
      final List<List<List<Object>>> repeated = copy(output);
      repeated.get(1).addAll(Collections.nCopies(copies, repeated.get(1).get(0)));
      assertThat(seen.add(hash(repeated, 10))).isTrue();
    }
  }

  @Test
  void nothingIsNotAbsentAndEmptyIsNotNull() {
    final List<Object> row = row();
    final Set<Long> seen = new HashSet<>(Set.of(hash(output(0), 1)));
    for (int column = 3; column < 5; column++) {
      for (final boolean isNull : new boolean[] {true, false}) {
        final List<Object> other = new ArrayList<>(row);
        other.set(column, isNull ? null : column == 3 ? "" : List.of());
        final List<List<List<Object>>> output = output(0);
        output.get(0).add(other);
        assertThat(seen.add(hash(output, 1))).isTrue();
      }
    }
    assertThat(seen).doesNotContain(0L).hasSize(5);
  }

  @Test
  void rowsWithoutColumnsAreCounted() {
    final Set<Long> seen = new HashSet<>();
    for (final int rows : new int[] {1, 2, 1_000}) {
      for (int partition = 0; partition < 2; partition++) {
        try (RowHash whole = newHash(1);
            RowHash parts = newHash(2)) {
          whole.add(partition, rows, new byte[0], 0);
          whole.launch();
          parts.add(partition, rows / 2, new byte[0], 0);
          parts.add(partition, rows - rows / 2, new byte[0], 0);
          assertThat(parts.value()).isEqualTo(whole.value());
          assertThat(seen.add(whole.value())).isTrue();
        }
      }
    }
  }

  @Test
  void manyResultsFindRoom() {
    final List<List<List<Object>>> output = output(0);
    output.get(2).add(row());
    final long one = hash(output, 1);
    final long[] all = new long[2];
    for (int i = 0; i < 2; i++) {
      final int perLaunch = i == 0 ? 500 : 40_000; // 32,768 fit the first buffer.
      try (RowHash hash = newHash(1)) {
        tables = 0;
        add(hash, 2, output.get(2));
        final byte[] metadata = metadata(output.get(2));
        for (int table = 1; table < 80_000; table++) {
          if (table % perLaunch == 0) {
            hash.launch();
          }
          hash.add(2, 1, metadata, segment.address());
        }
        hash.launch();
        all[i] = hash.value();
      }
    }
    assertThat(all[0]).isEqualTo(all[1]).isNotEqualTo(one);
  }

  private static byte[] metadata(final List<List<Object>> rows) {
    return PackedTableMaker.pack(KINDS, columns(rows), ByteBuffer.allocate(TABLE_BYTES)).metadata();
  }

  @Test
  void whatIsNotKnownIsTheAttemptsOwn() {
    final byte[] good = metadata(List.of(row()));
    final Set<Long> seen = new HashSet<>(Set.of(hash(output(0), 1)));
    long attempt = 1;
    for (int entry = 0; entry < PackedColumns.parse(good).entries(); entry++) {
      final byte[] dictionary = good.clone();
      dictionary[PackedTableMaker.entryOffset(entry)] = 22;
      if (PackedColumns.parse(dictionary) != null && PackedColumns.parse(good).rows(entry) == 0) {
        continue; // Nobody comes there.
      }
      try (RowHash hash = newHash(attempt++)) {
        hash.add(0, 1, dictionary, segment.address());
        hash.launch();
        hash.add(0, 1, good, segment.address());
        hash.launch();
        assertThat(seen.add(hash.value())).isTrue();
      }
    }
    assertThat(attempt).isGreaterThan(KINDS.size());
  }
}
