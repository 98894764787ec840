package io.zerohop.spark.rapids.gpu;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.HostColumnVector;
import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.ListType;
import ai.rapids.cudf.HostColumnVector.StructData;
import ai.rapids.cudf.HostColumnVector.StructType;
import ai.rapids.cudf.HostColumnVectorCore;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;

/** Makes tables on the GPU, and reads them, by nothing but what cudf itself has. */
public final class GpuTables {
  private static final String[] WORDS = {"", "a", "é漢x", "partition", "0123456789abcdef"};

  /** A kind of column that tests use. */
  public enum Kind {
    INT,
    LONG,
    DOUBLE,
    BOOLEAN,
    STRING,
    INTS,
    STRINGS,
    STRUCT
  }

  private GpuTables() {}

  /** A table of random values, for the caller to close. */
  public static Table random(
      final Random random, final List<Kind> kinds, final int rows, final double nulls) {
    final List<ColumnVector> columns = new ArrayList<>();
    try {
      for (final Kind kind : kinds) {
        columns.add(column(random, kind, rows, nulls));
      }
      return new Table(columns.toArray(new ColumnVector[0]));
    } finally {
      columns.forEach(ColumnVector::close);
    }
  }

  private static <T> T orNull(final Random random, final double nulls, final Supplier<T> value) {
    return random.nextDouble() < nulls ? null : value.get();
  }

  private static <T> T[] values(
      final Random random, final double nulls, final T[] to, final Supplier<T> value) {
    Arrays.setAll(to, i -> orNull(random, nulls, value));
    return to;
  }

  private static String word(final Random random) {
    return WORDS[random.nextInt(WORDS.length)];
  }

  private static ColumnVector column(
      final Random random, final Kind kind, final int rows, final double nulls) {
    return switch (kind) {
      case INT ->
          ColumnVector.fromBoxedInts(values(random, nulls, new Integer[rows], random::nextInt));
      case LONG ->
          ColumnVector.fromBoxedLongs(values(random, nulls, new Long[rows], random::nextLong));
      case DOUBLE ->
          ColumnVector.fromBoxedDoubles(
              values(random, nulls, new Double[rows], random::nextDouble));
      case BOOLEAN ->
          ColumnVector.fromBoxedBooleans(
              values(random, nulls, new Boolean[rows], random::nextBoolean));
      case STRING ->
          ColumnVector.fromStrings(values(random, nulls, new String[rows], () -> word(random)));
      case INTS -> lists(random, DType.INT32, random::nextInt, rows, nulls);
      case STRINGS -> lists(random, DType.STRING, () -> word(random), rows, nulls);
      case STRUCT -> structs(random, rows, nulls);
    };
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static ColumnVector lists(
      final Random random,
      final DType type,
      final Supplier<Object> value,
      final int rows,
      final double nulls) {
    final List<Object>[] lists =
        values(
            random,
            nulls,
            new List[rows],
            () -> Arrays.asList(values(random, nulls, new Object[random.nextInt(4)], value)));
    return ColumnVector.fromLists(new ListType(true, new BasicType(true, type)), lists);
  }

  private static ColumnVector structs(final Random random, final int rows, final double nulls) {
    final DataType type =
        new StructType(true, new BasicType(true, DType.INT64), new BasicType(true, DType.STRING));
    return ColumnVector.fromStructs(
        type,
        values(
            random,
            nulls,
            new StructData[rows],
            () ->
                new StructData(
                    orNull(random, nulls, random::nextLong),
                    orNull(random, nulls, () -> word(random)))));
  }

  /** Columns of these kinds, as a schema. */
  static Schema schema(final List<Kind> kinds) {
    final Schema.Builder schema = Schema.builder();
    for (int i = 0; i < kinds.size(); i++) {
      final String name = "c" + i;
      switch (kinds.get(i)) {
        case INT -> schema.addColumn(DType.INT32, name);
        case LONG -> schema.addColumn(DType.INT64, name);
        case DOUBLE -> schema.addColumn(DType.FLOAT64, name);
        case BOOLEAN -> schema.addColumn(DType.BOOL8, name);
        case STRING -> schema.addColumn(DType.STRING, name);
        case INTS -> schema.addColumn(DType.LIST, name).addColumn(DType.INT32, "item");
        case STRINGS -> schema.addColumn(DType.LIST, name).addColumn(DType.STRING, "item");
        case STRUCT -> {
          final Schema.Builder members = schema.addColumn(DType.STRUCT, name);
          members.addColumn(DType.INT64, "number");
          members.addColumn(DType.STRING, "text");
        }
      }
    }
    return schema.build();
  }

  /** How many columns of strings and of lists there are in a column of a kind. */
  static int nestedOffsets(final Kind kind) {
    return switch (kind) {
      case STRING, INTS, STRUCT -> 1;
      case STRINGS -> 2;
      default -> 0;
    };
  }

  /** The rows of a table as text. */
  public static List<String> rows(final Table table) {
    final ColumnVector[] columns = new ColumnVector[table.getNumberOfColumns()];
    Arrays.setAll(columns, table::getColumn);
    return rows(columns);
  }

  /** The rows of columns beside each other. */
  public static List<String> rows(final ColumnVector... columns) {
    final StringBuilder[] rows = new StringBuilder[(int) columns[0].getRowCount()];
    Arrays.setAll(rows, i -> new StringBuilder());
    for (final ColumnVector column : columns) {
      try (HostColumnVector onHost = column.copyToHost()) {
        for (int row = 0; row < rows.length; row++) {
          write(onHost, row, rows[row]);
        }
      }
    }
    return Arrays.stream(rows).map(StringBuilder::toString).toList();
  }

  private static void write(
      final HostColumnVectorCore column, final int row, final StringBuilder to) {
    if (column.isNull(row)) {
      to.append("null,");
      return;
    }
    switch (column.getType().getTypeId()) {
      case LIST -> {
        to.append('[');
        for (long i = column.getStartListOffset(row); i < column.getEndListOffset(row); i++) {
          write(column.getChildColumnView(0), (int) i, to);
        }
        to.append(']');
      }
      case STRUCT -> {
        to.append('{');
        for (int i = 0; i < column.getNumChildren(); i++) {
          write(column.getChildColumnView(i), row, to);
        }
        to.append('}');
      }
      case BOOL8 -> to.append(column.getByte(row));
      case INT32 -> to.append(column.getInt(row));
      case INT64 -> to.append(column.getLong(row));
      case FLOAT64 -> to.append(column.getDouble(row));
      default -> to.append('"').append(column.getJavaString(row)).append('"');
    }
    to.append(',');
  }
}
