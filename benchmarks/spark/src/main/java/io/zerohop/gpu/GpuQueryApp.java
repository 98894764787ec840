package io.zerohop.gpu;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/**
 * Asks the queries of TPC-H, of TPC-DS or of a job that writes tables, of tables that were written
 * before: to compare the GPU's rows with the CPU's ({@link QueryCheck}), or to measure what they
 * take, keeping their rows if that is wanted ({@link QueryTimes}). Without RAPIDS the same runs on
 * the CPU.
 */
public final class GpuQueryApp {
  private final SparkSession spark;
  private final QuerySet set;
  private final QueryRunner runner;
  private final double scale;

  private GpuQueryApp(
      final SparkSession spark, final QuerySet set, final double scale, final Duration limit) {
    this.spark = spark;
    this.set = set;
    this.scale = scale;
    this.runner = new QueryRunner(spark, limit);
  }

  /**
   * Exits with 1 if a query failed, gave other rows than expected or went a way it should not.
   *
   * @param args {@code tpch}, {@code tpcds} or {@code etl}, the folder of the tables, their scale
   *     factor, how many seconds a query may take, and one of
   *     <ul>
   *       <li>{@code answers}, the folder to write the CPU's answers to
   *       <li>{@code check}, the folder of known answers, the file for the results
   *       <li>{@code time}, the file to append results to, the name of the shuffle, rounds after
   *           the one that warms up, and the folder for the answers or {@code -}
   *     </ul>
   *     and at last the names of queries if not all are wanted
   */
  public static void main(final String[] args) throws IOException, InterruptedException {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final QuerySet set = QuerySet.named(args[0]);
    set.register(spark, args[1]);
    final GpuQueryApp app =
        new GpuQueryApp(
            spark, set, Double.parseDouble(args[2]), Duration.ofSeconds(Long.parseLong(args[3])));
    final int bad = app.run(args[4], List.of(args).subList(5, args.length));
    spark.stop();
    // A query that could not be cancelled must not keep the process.
    System.exit(bad == 0 ? 0 : 1);
  }

  private int run(final String mode, final List<String> args)
      throws IOException, InterruptedException {
    return switch (mode) {
      case "answers" -> answers(args.get(0)).write(queries(args, 1));
      case "check" ->
          new QueryCheck(spark, set, runner, answers(args.get(0)), scale, Path.of(args.get(1)))
              .check(queries(args, 2));
      case "time" ->
          new QueryTimes(spark, set, runner, scale, Path.of(args.get(0)), args.get(1))
              .measure(queries(args, 4), Integer.parseInt(args.get(2)), kept(args.get(3)));
      default -> throw new IllegalArgumentException("no mode '" + mode + "'");
    };
  }

  private static Path kept(final String folder) {
    return folder.equals("-") ? null : Path.of(folder);
  }

  private QueryAnswers answers(final String folder) {
    return new QueryAnswers(spark, set, runner, Path.of(folder), scale);
  }

  private List<String> queries(final List<String> args, final int from) {
    final List<String> queries =
        args.size() > from ? args.subList(from, args.size()) : set.queries();
    // A name that is not known ends the application before it has begun, and not in its midst.
    queries.forEach(query -> set.query(query, scale));
    return queries;
  }
}
