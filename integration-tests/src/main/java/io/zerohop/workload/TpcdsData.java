package io.zerohop.workload;

import io.trino.tpcds.Results;
import io.trino.tpcds.Session;
import io.trino.tpcds.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * TPC-DS' 24 tables as Parquet files, as the {@code dsdgen} of the specification fills them, with
 * the types that Spark's own tests give them.
 *
 * <p>A table is the same in however many parts it is generated: the random numbers of each row are
 * found from its number. What is returned is drawn with what is sold, so a table of returns draws
 * the sales anew, which costs little as long as nobody formats them.
 */
public final class TpcdsData {
  // Enough for all cores of a large machine and not more, so that files grow with the scale.
  private static final int MOST_PARTS = 128;
  private static final long ROWS_PER_PART = 200_000;
  private static final long ORDERS_PER_PART = 20_000;

  private TpcdsData() {}

  /**
   * Writes all tables; the application's entry point.
   *
   * @param args the folder to write to and the scale factor, which may be below 1
   */
  public static void main(final String[] args)
      throws IOException, InterruptedException, ExecutionException {
    final String folder = args[0];
    final double scale = Double.parseDouble(args[1]);
    try (SparkSession spark = SparkSession.builder().getOrCreate()) {
      write(spark, names(), folder, scale);
    }
  }

  /** Writes some of the tables, all at once. */
  static void write(
      final SparkSession spark, final List<String> names, final String folder, final double scale)
      throws InterruptedException, ExecutionException {
    final List<Callable<Void>> writes = new ArrayList<>();
    for (final String name : names) {
      writes.add(
          () -> {
            rows(spark, name, scale, parts(Table.getTable(name), scale))
                .write()
                .mode(SaveMode.Overwrite)
                .parquet(folder + "/" + name);
            return null;
          });
    }
    AtOnce.run(writes);
  }

  /** The names of all tables. */
  public static List<String> names() {
    return tables().stream().map(Table::getName).toList();
  }

  /** Makes each table's files known to SQL under the table's name. */
  public static void register(final SparkSession spark, final String folder) {
    register(spark, names(), folder);
  }

  /** The same for some of the tables. */
  static void register(final SparkSession spark, final List<String> names, final String folder) {
    for (final String name : names) {
      spark.read().schema(schema(name)).parquet(folder + "/" + name).createOrReplaceTempView(name);
    }
  }

  /** A table's columns. */
  public static StructType schema(final String name) {
    return new StructType(
        Arrays.stream(Table.getTable(name).getColumns())
            .map(TpcdsColumn::field)
            .toArray(StructField[]::new));
  }

  /**
   * A table's rows, which are drawn where they are used.
   *
   * @param parts how many tasks draw them; 1 for a table that keeps history, each of whose rows is
   *     made from the one before
   */
  static Dataset<Row> rows(
      final SparkSession spark, final String name, final double scale, final int parts) {
    final FlatMapFunction<Integer, Row> generate = part -> part(name, scale, part, parts);
    final List<Integer> numbers = IntStream.range(0, parts).boxed().toList();
    final JavaSparkContext context = new JavaSparkContext(spark.sparkContext());
    return spark.createDataFrame(
        context.parallelize(numbers, parts).flatMap(generate), schema(name));
  }

  /**
   * In how many parts a table may be drawn.
   *
   * @param wanted how many there should be
   */
  static int parts(final String name, final double scale, final int wanted) {
    final Table table = Table.getTable(name);
    return table.keepsHistory() ? 1 : (int) Math.min(wanted, Math.max(1, units(table, scale)));
  }

  private static int parts(final Table table, final double scale) {
    final long perPart = isOfOrders(table) ? ORDERS_PER_PART : ROWS_PER_PART;
    final long wanted = (units(table, scale) + perPart - 1) / perPart;
    return parts(table.getName(), scale, (int) Math.min(MOST_PARTS, wanted));
  }

  private static Iterator<Row> part(
      final String name, final double scale, final int part, final int parts) {
    final Table table = Table.getTable(name);
    final Session session = Session.getDefaultSession().withScale(scale).withTable(table);
    final long units = units(table, scale);
    final Results results =
        Results.constructResults(
            table, units * part / parts + 1, units * (part + 1) / parts, session);
    final TpcdsColumn[] columns =
        Arrays.stream(table.getColumns()).map(TpcdsColumn::of).toArray(TpcdsColumn[]::new);
    return StreamSupport.stream(results.spliterator(), false)
        .map(rows -> row(columns, rows.get(0)))
        .iterator();
  }

  private static Row row(final TpcdsColumn[] columns, final List<String> texts) {
    final Object[] values = new Object[columns.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = columns[i].value(texts.get(i));
    }
    return RowFactory.create(values);
  }

  /** What the generator numbers: rows, but orders where a row is a line of one. */
  private static long units(final Table table, final double scale) {
    final Table numbered = table.isChild() ? table.getParent() : table;
    return Session.getDefaultSession().withScale(scale).getScaling().getRowCount(numbered);
  }

  private static boolean isOfOrders(final Table table) {
    return table.isChild() || table.hasChild();
  }

  private static List<Table> tables() {
    return Table.getBaseTables().stream().filter(table -> table != Table.DBGEN_VERSION).toList();
  }
}
