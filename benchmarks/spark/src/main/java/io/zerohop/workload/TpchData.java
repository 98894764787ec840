package io.zerohop.workload;

import io.trino.tpch.TpchColumn;
import io.trino.tpch.TpchEntity;
import io.trino.tpch.TpchTable;
import java.io.IOException;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * TPC-H's eight tables as Parquet files, as the {@code dbgen} of the specification fills them.
 *
 * <p>Amounts are {@code decimal(15,2)}, so every sum is exact and does not depend on the order in
 * which a shuffle delivers the rows.
 */
public final class TpchData {
  private static final int MONEY_SCALE = 2;
  private static final DataType MONEY = DataTypes.createDecimalType(15, MONEY_SCALE);
  private static final int ROWS_PER_PART = 200_000;
  // Enough for all cores of a large machine and not more, so that files grow with the scale.
  private static final int MAX_PARTS = 128;
  private static final Map<String, Integer> ROWS_AT_SCALE_ONE =
      Map.of(
          "lineitem", 6_000_000,
          "orders", 1_500_000,
          "partsupp", 800_000,
          "part", 200_000,
          "customer", 150_000);

  private TpchData() {}

  /**
   * Writes all tables, or a share of them; the application's entry point.
   *
   * @param args the folder to write to, the scale factor and, if other processes write the rest,
   *     which share this one writes, from 0, and of how many
   */
  public static void main(final String[] args)
      throws IOException, InterruptedException, ExecutionException {
    final String folder = args[0];
    final double scale = Double.parseDouble(args[1]);
    final int share = args.length > 2 ? Integer.parseInt(args[2]) : 0;
    final int shares = args.length > 2 ? Integer.parseInt(args[3]) : 1;
    final List<Callable<Void>> writes = new ArrayList<>();
    try (SparkSession spark = SparkSession.builder().getOrCreate()) {
      for (final TpchTable<?> table : TpchTable.getTables()) {
        final int parts = parts(table, scale);
        final List<Integer> own =
            IntStream.rangeClosed(1, parts).filter(p -> p % shares == share).boxed().toList();
        if (!own.isEmpty()) {
          writes.add(
              () -> {
                write(spark, table, folder, scale, own, parts);
                return null;
              });
        }
      }
      AtOnce.run(writes);
    }
  }

  /** Makes each table's files known to SQL under the table's name. */
  public static void register(final SparkSession spark, final String folder) {
    for (final TpchTable<?> table : TpchTable.getTables()) {
      spark
          .read()
          .schema(schema(table))
          .parquet(folder + "/" + table.getTableName())
          .createOrReplaceTempView(table.getTableName());
    }
  }

  private static void write(
      final SparkSession spark,
      final TpchTable<?> table,
      final String folder,
      final double scale,
      final List<Integer> own,
      final int parts) {
    final String name = table.getTableName();
    final FlatMapFunction<Integer, Row> generate = part -> rows(name, scale, part, parts);
    final JavaSparkContext context = new JavaSparkContext(spark.sparkContext());
    spark
        .createDataFrame(context.parallelize(own, own.size()).flatMap(generate), schema(table))
        .write()
        .mode(SaveMode.Overwrite)
        .parquet(folder + "/" + name);
  }

  private static int parts(final TpchTable<?> table, final double scale) {
    final double rows = ROWS_AT_SCALE_ONE.getOrDefault(table.getTableName(), 0) * scale;
    return Math.max(1, Math.min(MAX_PARTS, (int) Math.ceil(rows / ROWS_PER_PART)));
  }

  private static Iterator<Row> rows(
      final String name, final double scale, final int part, final int parts) {
    return rows(TpchTable.getTable(name), scale, part, parts);
  }

  private static <E extends TpchEntity> Iterator<Row> rows(
      final TpchTable<E> table, final double scale, final int part, final int parts) {
    final List<TpchColumn<E>> columns = table.getColumns();
    return StreamSupport.stream(table.createGenerator(scale, part, parts).spliterator(), false)
        .map(entity -> row(columns, entity))
        .iterator();
  }

  private static <E extends TpchEntity> Row row(final List<TpchColumn<E>> columns, final E entity) {
    final Object[] values = new Object[columns.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = value(columns.get(i), entity);
    }
    return RowFactory.create(values);
  }

  private static <E extends TpchEntity> Object value(final TpchColumn<E> column, final E entity) {
    return switch (column.getType().getBase()) {
      case IDENTIFIER -> column.getIdentifier(entity);
      case INTEGER -> column.getInteger(entity);
      case DATE -> LocalDate.ofEpochDay(column.getDate(entity));
      case DOUBLE -> BigDecimal.valueOf(Math.round(column.getDouble(entity) * 100), MONEY_SCALE);
      case VARCHAR -> column.getString(entity);
    };
  }

  private static StructType schema(final TpchTable<?> table) {
    final List<TpchColumn<?>> columns = new ArrayList<>(table.getColumns());
    StructType schema = new StructType();
    for (final TpchColumn<?> column : columns) {
      schema = schema.add(column.getColumnName(), type(column));
    }
    return schema;
  }

  private static DataType type(final TpchColumn<?> column) {
    return switch (column.getType().getBase()) {
      case IDENTIFIER -> DataTypes.LongType;
      case INTEGER -> DataTypes.IntegerType;
      case DATE -> DataTypes.DateType;
      case DOUBLE -> MONEY;
      case VARCHAR -> DataTypes.StringType;
    };
  }
}
