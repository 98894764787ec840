package io.zerohop.spark.versions;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.udf;

import io.zerohop.gpu.Strike;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.types.DataTypes;

/**
 * Deals rows of a non-deterministic map stage out round robin, and kills the other executor when
 * some consumers have read them and others have not. A map task that runs again deals its rows out
 * differently; unless Spark learns that from the row checksums, it mixes both deals, and rows are
 * lost and doubled.
 */
public final class RoundRobinApp {
  private static final long ROWS = 40_000;
  private static final int MAPS = 4;
  private static final int READERS = 10;

  /** The reader that strikes: with two cores, about half of the others are done by then. */
  private static final int STRIKER = 6;

  private RoundRobinApp() {}

  /**
   * Prints rows, distinct ids, the largest count of one id and the sum of ids.
   *
   * @param args path of a marker file that does not exist yet
   */
  public static void main(final String[] args) {
    final String marker = args[0];
    final SparkSession spark = SparkSession.builder().appName("zerohop-round-robin").getOrCreate();
    try {
      final UserDefinedFunction noise =
          udf((UDF1<Long, Long>) id -> ThreadLocalRandom.current().nextLong(), DataTypes.LongType)
              .asNondeterministic();
      final UserDefinedFunction strike = Strike.in(STRIKER, marker);
      final Dataset<Row> dealt =
          spark
              .range(0, ROWS, 1, MAPS)
              .select(col("id"), noise.apply(col("id")).as("noise"))
              .repartition(READERS);
      final Row row =
          dealt
              .select(strike.apply(col("id")).as("id"), col("noise"))
              .groupBy("id")
              // Noise that nobody asks for would be left out from the beginning.
              .agg(count("*").as("n"), max("noise").as("noise"))
              .agg(sum("n"), count("*"), max("n"), sum("id"), count("noise"))
              .collectAsList()
              .get(0);
      System.out.println(
          String.format(
              Locale.ROOT,
              "round-robin-app: version=%s rows=%d ids=%d most=%d sum=%d struck=%b",
              spark.version(),
              row.getLong(0),
              row.getLong(1),
              row.getLong(2),
              row.getLong(3),
              Files.exists(Path.of(marker))));
    } finally {
      spark.stop();
    }
  }
}
