package io.zerohop.workload;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.cluster.SparkApplication;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Option;

/**
 * A Spark application that runs the workloads it is asked for, one at a time, until its input ends.
 *
 * <p>Each question is a line with a {@link Question} as JSON; each answer an {@link Outcome}, after
 * {@link SparkApplication#ANSWER}. The first line it says is {@link #READY}, and where its UI is if
 * it has one.
 */
public final class WorkloadApp {
  /** What it says once its executors are there. */
  public static final String READY = "ready";

  private static final long LISTENER_LIMIT_MS = 30_000;
  private static final long SETTLE_MS = 250;
  private static final String RPC_PROBE = RpcProbe.class.getName();
  private static final double NANOS_PER_SECOND = 1e9;

  private final SparkSession spark;
  private final ShuffleMeter meter = new ShuffleMeter();
  private final ObjectMapper json = new ObjectMapper();
  private final PrintStream out = System.out;

  private WorkloadApp(final SparkSession spark) {
    this.spark = spark;
    spark.sparkContext().addSparkListener(meter);
  }

  /**
   * Serves until the input ends.
   *
   * @param args the name of {@link Tables} and the folder with them, if there are any
   */
  public static void main(final String[] args) throws Exception {
    final BlockingQueue<String> questions = new LinkedBlockingQueue<>();
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final Thread reader = new Thread(() -> readQuestions(questions), "questions");
    reader.setDaemon(true);
    reader.start();
    final WorkloadApp app = new WorkloadApp(spark);
    if (args.length > 0) {
      Tables.valueOf(args[0]).register(spark, args[1]);
    }
    app.warmUp();
    final Option<String> ui = spark.sparkContext().uiWebUrl();
    app.say(ui.isDefined() ? READY + " " + ui.get() : READY);
    while (true) {
      app.serve(app.json.readValue(questions.take(), Question.class));
    }
  }

  /** Runs in a thread of its own, so that a lost asker is noticed in the middle of a query. */
  private static void readQuestions(final BlockingQueue<String> questions) {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        questions.add(line);
      }
    } catch (final IOException e) {
      System.err.println("questions cannot be read any more: " + e);
    }
    System.exit(0);
  }

  private void warmUp() {
    spark.sql("SELECT id % 100 AS k, count(*) FROM range(1000000) GROUP BY 1").collectAsList();
  }

  private void serve(final Question question) throws Exception {
    Outcome outcome;
    try {
      outcome = run(question);
    } catch (final RuntimeException | IOException e) {
      e.printStackTrace();
      outcome = Outcome.failed(question.workload(), e);
    }
    forgetShuffles();
    say(json.writeValueAsString(outcome));
  }

  /**
   * Spark drops a shuffle's blocks when the driver's garbage collector finds its handle. That is
   * done here between workloads, so that none pays for those before it.
   */
  private void forgetShuffles() throws InterruptedException {
    System.gc();
    Thread.sleep(SETTLE_MS);
  }

  private Outcome run(final Question question)
      throws IOException, TimeoutException, InterruptedException {
    final Workload workload = Workload.named(question.workload());
    workload.settings().forEach(spark::sql);
    try {
      meter.reset();
      RpcProbe.reset();
      final long start = System.nanoTime();
      final Dataset<Row> query = spark.sql(workload.query());
      final List<Row> rows = query.collectAsList();
      final double seconds = (System.nanoTime() - start) / NANOS_PER_SECOND;
      spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
      if (spark.sparkContext().getConf().get("spark.plugins", "").contains(RPC_PROBE)) {
        Thread.sleep(RpcProbe.REPORT_MS);
      }
      if (question.resultFile() != null) {
        Answer.of(workload, query, rows).write(Path.of(question.resultFile()));
      }
      return meter.outcome(workload.name(), rows.size(), seconds);
    } finally {
      workload.changedKeys().forEach(spark.conf()::unset);
    }
  }

  private void say(final String answer) {
    out.println(SparkApplication.ANSWER + answer);
    out.flush();
  }
}
