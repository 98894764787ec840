package io.zerohop.gpu;

import io.zerohop.workload.TpcdsData;
import io.zerohop.workload.TpchData;
import io.zerohop.workload.Workload;
import java.util.List;
import java.util.Locale;
import java.util.function.BiConsumer;
import org.apache.spark.sql.SparkSession;

/** Tables that belong together, and the queries that ask them. */
enum QuerySet {
  /** Each query begins with no shuffle of others in memory. */
  TPCH("", true, Workload.TPCH, TpchData::register),

  /** As in a user's session: shuffles stay until the driver's garbage collector finds them. */
  TPCDS("tpcds:", false, Workload.TPCDS, TpcdsData::register),

  /** Writes tables made of those of TPC-DS into a folder beside theirs. */
  ETL("etl:", true, Workload.ETL, QuerySet::registerToWrite);

  private final String prefix;
  private final boolean forgets;
  private final List<String> names;
  private final BiConsumer<SparkSession, String> tables;

  QuerySet(
      final String prefix,
      final boolean forgets,
      final List<String> names,
      final BiConsumer<SparkSession, String> tables) {
    this.prefix = prefix;
    this.forgets = forgets;
    this.names = names;
    this.tables = tables;
  }

  private static void registerToWrite(final SparkSession spark, final String folder) {
    TpcdsData.register(spark, folder);
    spark.conf().set("etl.out", folder + "-etl");
  }

  /** The one that a command line calls {@code tpch}, {@code tpcds} or {@code etl}. */
  static QuerySet named(final String name) {
    return valueOf(name.toUpperCase(Locale.ROOT));
  }

  /** Whether the shuffles of one query are to be gone before the next one begins. */
  boolean forgetsBetweenQueries() {
    return forgets;
  }

  /** Makes the tables of a folder known to SQL. */
  void register(final SparkSession spark, final String folder) {
    tables.accept(spark, folder);
  }

  /** The short names of all queries, as {@code q14a}. */
  List<String> queries() {
    return names.stream().map(name -> name.substring(prefix.length())).toList();
  }

  /**
   * A query.
   *
   * @param query its short name
   * @param scale the scale factor of the tables that it will ask
   * @throws IllegalArgumentException if there is none of that name
   */
  Workload query(final String query, final double scale) {
    return Workload.named(prefix + query, scale);
  }
}
