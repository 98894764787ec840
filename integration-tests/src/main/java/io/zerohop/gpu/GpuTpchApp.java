package io.zerohop.gpu;

import io.zerohop.workload.TpchData;
import io.zerohop.workload.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/**
 * Asks TPC-H's queries of tables that {@link TpchData} has written: to compare the GPU's rows with
 * the CPU's ({@link TpchCheck}), to keep the CPU's for later ({@link TpchAnswers}), or to measure
 * how long they take ({@link TpchTimes}).
 */
public final class GpuTpchApp {
  private final SparkSession spark;
  private final QueryRunner runner;
  private final double scale;

  private GpuTpchApp(final SparkSession spark, final double scale, final Duration limit) {
    this.spark = spark;
    this.scale = scale;
    this.runner = new QueryRunner(spark, limit);
  }

  /**
   * Exits with 1 if a query failed, gave other rows than expected or went a way it should not.
   *
   * @param args the folder of the tables, their scale factor, how many seconds a query may take,
   *     and one of
   *     <ul>
   *       <li>{@code answers}, the folder to write to
   *       <li>{@code check}, the folder of known answers, the file for the results
   *       <li>{@code time}, the file to append results to, the name of the shuffle, rounds
   *     </ul>
   *     and at last the names of queries if not all are wanted
   */
  public static void main(final String[] args) throws IOException, InterruptedException {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    TpchData.register(spark, args[0]);
    final GpuTpchApp app =
        new GpuTpchApp(
            spark, Double.parseDouble(args[1]), Duration.ofSeconds(Long.parseLong(args[2])));
    final int bad = app.run(args[3], List.of(args).subList(4, args.length));
    spark.stop();
    // A query that could not be cancelled must not keep the process.
    System.exit(bad == 0 ? 0 : 1);
  }

  private int run(final String mode, final List<String> args)
      throws IOException, InterruptedException {
    return switch (mode) {
      case "answers" -> answers(args.get(0)).write(queries(args, 1));
      case "check" ->
          new TpchCheck(spark, runner, answers(args.get(0)), scale, Path.of(args.get(1)))
              .check(queries(args, 2));
      case "time" ->
          new TpchTimes(spark, runner, scale, Path.of(args.get(0)), args.get(1))
              .measure(queries(args, 3), Integer.parseInt(args.get(2)));
      default -> throw new IllegalArgumentException("no mode '" + mode + "'");
    };
  }

  private TpchAnswers answers(final String folder) {
    return new TpchAnswers(spark, runner, Path.of(folder), scale);
  }

  private static List<String> queries(final List<String> args, final int from) {
    final List<String> queries =
        args.size() > from ? args.subList(from, args.size()) : Workload.TPCH;
    // A name that is not known ends the application before it has begun, and not in its midst.
    queries.forEach(Workload::named);
    return queries;
  }
}
