package io.zerohop.workload;

import io.trino.tpcds.Results;
import io.trino.tpcds.Session;
import io.trino.tpcds.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
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
 *
 * <p>The generator does not scale beyond some threads of one process: its formatting checks types
 * in a way by which they take each other's cache lines (JDK-8180450). On large machines several
 * processes write a share each.
 */
public final class TpcdsData {
  // Enough for all cores of a large machine and not more, so that files grow with the scale.
  private static final int MAX_PARTS = 128;
  private static final long ROWS_PER_PART = 200_000;
  private static final long ORDERS_PER_PART = 20_000;

  private TpcdsData() {}

  /**
   * Writes all tables, or a share of them; the application's entry point.
   *
   * @param args the folder to write to, the scale factor, which may be below 1, and, if other
   *     processes write the rest, which share this one writes, from 0, and of how many
   */
  public static void main(final String[] args)
      throws IOException, InterruptedException, ExecutionException {
    final String folder = args[0];
    final double scale = Double.parseDouble(args[1]);
    final int share = args.length > 2 ? Integer.parseInt(args[2]) : 0;
    final int shares = args.length > 2 ? Integer.parseInt(args[3]) : 1;
    try (SparkSession spark = SparkSession.builder().getOrCreate()) {
      write(spark, names(), folder, scale, share, shares);
    }
  }

  /** Writes some of the tables, all at once. */
  static void write(
      final SparkSession spark, final List<String> names, final String folder, final double scale)
      throws InterruptedException, ExecutionException {
    write(spark, names, folder, scale, 0, 1);
  }

  private static void write(
      final SparkSession spark,
      final List<String> names,
      final String folder,
      final double scale,
      final int share,
      final int shares)
      throws InterruptedException, ExecutionException {
    // The generator's amounts are texts of the default locale, and are read as numbers here.
    Locale.setDefault(Locale.Category.FORMAT, Locale.US);
    final List<Callable<Void>> writes = new ArrayList<>();
    for (final String name : names) {
      final int parts = parts(Table.getTable(name), scale);
      // A table of one part is written by one of the processes, and not always by the first.
      final int first = Table.getTable(name).ordinal();
      final List<Integer> own =
          IntStream.range(0, parts).filter(p -> (p + first) % shares == share).boxed().toList();
      if (!own.isEmpty()) {
        writes.add(
            () -> {
              rows(spark, name, scale, own, parts)
                  .write()
                  .mode(SaveMode.Overwrite)
                  .parquet(folder + "/" + name);
              return null;
            });
      }
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
    return rows(spark, name, scale, IntStream.range(0, parts).boxed().toList(), parts);
  }

  private static Dataset<Row> rows(
      final SparkSession spark,
      final String name,
      final double scale,
      final List<Integer> some,
      final int parts) {
    final FlatMapFunction<Integer, Row> generate = part -> part(name, scale, part, parts);
    final JavaSparkContext context = new JavaSparkContext(spark.sparkContext());
    return spark.createDataFrame(
        context.parallelize(some, some.size()).flatMap(generate), schema(name));
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
    return parts(table.getName(), scale, (int) Math.min(MAX_PARTS, wanted));
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
