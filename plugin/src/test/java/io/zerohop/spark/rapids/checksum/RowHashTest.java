package io.zerohop.spark.rapids.checksum;

import static org.assertj.core.api.Assertions.assertThat;

import ai.rapids.cudf.DType;
import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.ListType;
import ai.rapids.cudf.HostColumnVector.StructData;
import ai.rapids.cudf.HostColumnVector.StructType;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.Table;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.host.HostDevice;
import io.zerohop.spark.rapids.api.TaskStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The checksum of a map output follows its rows and their partitions, and nothing else. */
class RowHashTest {
  private static final int PARTITIONS = 5;
  private static final List<DataType> TYPES =
      List.of(
          new BasicType(true, DType.INT64),
          new BasicType(true, DType.BOOL8),
          new BasicType(false, DType.INT16),
          new BasicType(true, DType.STRING),
          new ListType(true, new BasicType(true, DType.STRING)),
          new StructType(
              true,
              new BasicType(true, DType.INT16),
              new ListType(false, new BasicType(true, DType.INT64))));

  private final HostDevice device = new HostDevice();
  private final TaskStream stream = new TaskStream(() -> device.openStream("row hash"));
  private final Random random = new Random(8);
  private final List<Table> tables = new ArrayList<>();

  @AfterEach
  void nothingIsLeftOpen() {
    stream.close();
    tables.forEach(Table::close);
    assertThat(Rmm.getTotalBytesAllocated()).isZero();
    assertThat(device.openResources()).isZero();
    device.close();
  }

  private RowHash newHash(final long attempt) {
    return new RowHash(PARTITIONS, stream, device::hostBuffer, Duration.ofSeconds(20), attempt);
  }

  private List<Object> row() {
    final List<Object> row = new ArrayList<>();
    TYPES.forEach(type -> row.add(value(type)));
    return row;
  }

  /** A value; null one time in four where it may be. */
  private Object value(final DataType type) {
    if (type.isNullable() && random.nextInt(4) == 0) {
      return null;
    }
    return switch (type.getType().getTypeId()) {
      case INT64 -> random.nextLong();
      case BOOL8 -> random.nextBoolean();
      case INT16 -> (short) random.nextInt();
      case STRING -> "x".repeat(random.nextInt(20)) + random.nextInt();
      case LIST -> {
        final List<Object> items = new ArrayList<>();
        for (int i = random.nextInt(4); i > 0; i--) {
          items.add(value(type.getChild(0)));
        }
        yield items;
      }
      default -> new StructData(value(type.getChild(0)), value(type.getChild(1)));
    };
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
    final Table table = Table.of(TYPES, columns(rows));
    tables.add(table);
    hash.add(partition, table);
  }

  private static List<List<Object>> columns(final List<List<Object>> rows) {
    final List<List<Object>> columns = new ArrayList<>();
    for (int column = 0; column < TYPES.size(); column++) {
      final int at = column;
      columns.add(new ArrayList<>(rows.stream().map(row -> row.get(at)).toList()));
    }
    return columns;
  }

  @Test
  void neitherOrderNorTablesMatter() {
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
        for (int column = 0; column < TYPES.size(); column++) {
          final List<List<List<Object>>> other = copy(output);
          other
              .get(partition)
              .get(row)
              .set(column, changed(TYPES.get(column), other, partition, row));
          assertThat(seen.add(hash(other, 10))).as("row %d, column %d", row, column).isTrue();
        }
      }
    }
  }

  /** Another value than there is; null becomes something, and something null where it may. */
  private Object changed(
      final DataType type,
      final List<List<List<Object>>> output,
      final int partition,
      final int row) {
    final Object before = output.get(partition).get(row).get(TYPES.indexOf(type));
    Object after = before != null && type.isNullable() ? null : before;
    while (java.util.Objects.equals(before, after)) {
      after = value(type);
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
          whole.add(partition, rows);
          whole.launch();
          parts.add(partition, rows / 2);
          parts.add(partition, rows - rows / 2);
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
        add(hash, 2, output.get(2));
        final Table table = tables.get(tables.size() - 1);
        for (int count = 1; count < 80_000; count++) {
          if (count % perLaunch == 0) {
            hash.launch();
          }
          hash.add(2, table);
        }
        hash.launch();
        all[i] = hash.value();
      }
    }
    assertThat(all[0]).isEqualTo(all[1]).isNotEqualTo(one);
  }

  @Test
  void whatIsNotKnownIsTheAttemptsOwn() {
    DataType deep = new BasicType(false, DType.INT64);
    Object value = 5L;
    for (int depth = 0; depth <= RowHashBatch.MOST_DEPTH; depth++) {
      deep = new ListType(false, deep);
      value = List.of(value);
    }
    final int many = RowHashBatch.MOST_COLUMNS + 1;
    final List<Table> unknown =
        List.of(
            Table.of(List.of(deep), List.of(List.of(value))),
            Table.of(
                Collections.nCopies(many, TYPES.get(0)),
                Collections.nCopies(many, List.of((Object) 1L))));
    tables.addAll(unknown);
    final Set<Long> seen = new HashSet<>(Set.of(hash(output(0), 1)));
    for (int attempt = 1; attempt <= 4; attempt++) {
      try (RowHash hash = newHash(attempt)) {
        hash.add(0, unknown.get(attempt % 2));
        hash.launch();
        add(hash, 0, List.of(row()));
        hash.launch();
        assertThat(seen.add(hash.value())).isTrue();
      }
    }
  }
}
