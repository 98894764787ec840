package io.zerohop.spark.versions;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** A shuffle as a client of Spark Connect asks for it, without any of Zerohop's classes. */
public final class ConnectClientApp {
  private ConnectClientApp() {}

  /** Argument: the server, such as {@code sc://localhost:15002}. */
  public static void main(final String[] arguments) {
    final SparkSession session = SparkSession.builder().remote(arguments[0]).getOrCreate();
    final Row row =
        session
            .range(0, 100_000, 1, 8)
            .groupBy(col("id").mod(lit(1_000)).as("key"))
            .agg(sum("id").as("sum"))
            .agg(count("key"), sum("sum"))
            .collectAsList()
            .get(0);
    System.out.println("connect-client: groups=" + row.getLong(0) + " sum=" + row.getLong(1));
    System.exit(0); // It has threads that wait for the next call.
  }
}
