package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.compat.PlacedData;
import io.zerohop.spark.doctor.DoctorCommand.DoctorOptions;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.RateCheck.Rate;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.storage.BlockManagerId;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import scala.Tuple2;

/**
 * Examines a running application: its driver's settings once, and each executor in a task, one
 * after the other, so that measurements do not overlap. Used by one thread.
 *
 * @param context not closed by this
 */
public record SparkApplication(SparkContext context, boolean measures) {
  private static final String DRIVER = "driver";
  private static final Pattern LOCAL_CLUSTER =
      Pattern.compile("local-cluster\\[\\s*(\\d{1,6})\\s*,.*");

  private static final long EXECUTORS_SECONDS = 30;
  private static final long SETTLED_SECONDS = 2;
  private static final long POLL_MILLIS = 200;
  private static final long TASK_SECONDS = 600;

  /** How often an executor is asked for: another one may take the task while it is busy. */
  private static final int ATTEMPTS = 3;

  /** Examines it; waits half a minute at most for executors to come, and is interruptible. */
  public Report examine() throws InterruptedException {
    final Examination driver = new Examination();
    SparkChecks.ofDriver(driver, context.conf());
    final List<Report.Section> sections = new ArrayList<>();
    List<BlockManagerId> executors = executors();
    if (executors.isEmpty()) {
      callForOne();
      executors = registered();
    }
    if (executors.isEmpty()) {
      driver
          .notes()
          .add(
              Item.EXECUTORS.fail(
                  "no executor came within " + 2 * EXECUTORS_SECONDS + " s",
                  "see the cluster manager: are there resources for one, and do executors that"
                      + " it starts end at once? Their logs say why"));
    } else if (executors.size() < expected()) {
      driver
          .notes()
          .add(
              Item.EXECUTORS.warn(
                  executors.size()
                      + " of "
                      + expected()
                      + " executors have come; the others were not checked",
                  "see the cluster manager: are there resources for all of them? Run the"
                      + " doctor again when they are there"));
    }
    for (final BlockManagerId executor : executors) {
      sections.add(section(executor, executors));
    }
    sections.add(0, Report.Section.of("driver on " + driverHost(), driver.notes()));
    return new Report(sections);
  }

  private String driverHost() {
    return context.conf().get("spark.driver.host", "this host");
  }

  private int expected() {
    return context.isLocal() ? 1 : Math.max(1, expected(context.conf()));
  }

  /**
   * The fewest executors that an application will have; 0 where nobody says so. Spark's standalone
   * cluster has as many as its workers give.
   */
  static int expected(final SparkConf conf) {
    final Matcher local = LOCAL_CLUSTER.matcher(conf.get("spark.master", ""));
    if (local.matches()) {
      return Integer.parseInt(local.group(1));
    }
    return conf.getBoolean("spark.dynamicAllocation.enabled", false)
        ? conf.getInt("spark.dynamicAllocation.minExecutors", 0)
        : conf.get("spark.master", "").startsWith("spark://")
            ? 0
            : conf.getInt("spark.executor.instances", 0);
  }

  /**
   * Where all executors are, or the driver if tasks run in it: those that are expected, and others
   * that come with them.
   */
  private List<BlockManagerId> executors() throws InterruptedException {
    final int expected = expected();
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(EXECUTORS_SECONDS);
    List<BlockManagerId> known = registered();
    long since = System.nanoTime();
    while (System.nanoTime() < end
        && (known.size() < expected
            || System.nanoTime() - since < TimeUnit.SECONDS.toNanos(SETTLED_SECONDS))) {
      Thread.sleep(POLL_MILLIS);
      final List<BlockManagerId> now = registered();
      if (!now.equals(known)) {
        known = now;
        since = System.nanoTime();
      }
    }
    return known;
  }

  /** Dynamic allocation has none until there is something to do. */
  private void callForOne() throws InterruptedException {
    final JavaFutureAction<List<String>> something =
        PlacedData.on(context, driverHost(), DRIVER, "", String.class).collectAsync();
    try {
      something.get(EXECUTORS_SECONDS, TimeUnit.SECONDS);
    } catch (final ExecutionException | TimeoutException e) {
      something.cancel(true); // What is missing is said by the caller.
    }
  }

  private List<BlockManagerId> registered() {
    final List<BlockManagerId> found = new ArrayList<>();
    final var managers = context.env().blockManager().master().getMemoryStatus().keysIterator();
    while (managers.hasNext()) {
      final BlockManagerId id = managers.next();
      if (context.isLocal() || !id.executorId().equals(DRIVER)) {
        found.add(id);
      }
    }
    found.sort(
        Comparator.comparing((BlockManagerId it) -> it.executorId().length())
            .thenComparing(BlockManagerId::executorId));
    return found;
  }

  private Report.Section section(final BlockManagerId executor, final List<BlockManagerId> all)
      throws InterruptedException {
    final String title = "executor " + executor.executorId() + " on " + executor.host();
    try {
      for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        final SparkExecutorTask.Answer answer = ask(executor, all);
        if (answer.executorId().equals(executor.executorId())) {
          final List<Finding> findings = new ArrayList<>(answer.findings());
          findings.add(0, release(answer));
          return new Report.Section(title, findings, answer.rates());
        }
      }
      final Finding busy =
          Item.EXECUTORS.warn(
              "it took no task, so it was not checked", "run the doctor again when it is idle");
      return new Report.Section(title, List.of(busy), List.of());
    } catch (final ExecutionException e) {
      return failed(
          title,
          "its task failed: " + e.getCause(),
          "if classes differ, give driver and executors the same zerohop-spark jar; else see its"
              + " log");
    } catch (final TimeoutException e) {
      return failed(
          title,
          "its task did not end within " + TASK_SECONDS + " s",
          "see its stacks in Spark's UI");
    }
  }

  private SparkExecutorTask.Answer ask(
      final BlockManagerId executor, final List<BlockManagerId> all)
      throws InterruptedException, ExecutionException, TimeoutException {
    final JavaFutureAction<List<SparkExecutorTask.Answer>> answers =
        PlacedData.on(
                context,
                executor.host(),
                executor.executorId(),
                executor.executorId(),
                String.class)
            .map(new SparkExecutorTask(new ArrayList<>(all), measures))
            .collectAsync();
    try (Undo undo = new Undo(() -> answers.cancel(true))) {
      final SparkExecutorTask.Answer answer = answers.get(TASK_SECONDS, TimeUnit.SECONDS).get(0);
      return undo.keep(answer);
    }
  }

  private static Finding release(final SparkExecutorTask.Answer answer) {
    try {
      JarVersion.check(Report.version(), answer.version(), answer.executorId());
      return Item.VERSIONS.ok("Zerohop " + answer.version() + ", as the driver");
    } catch (final IllegalStateException e) {
      return Item.VERSIONS.fail(e, "");
    }
  }

  private static Report.Section failed(final String title, final String what, final String remedy) {
    return new Report.Section(title, List.of(Item.EXECUTORS.fail(what, remedy)), List.of());
  }

  /**
   * Examines the executor that it runs in, if that is the one that is meant.
   *
   * @param all block managers of all executors; a serializable list
   * @param measures whether to measure rates, too
   */
  private record SparkExecutorTask(List<BlockManagerId> all, boolean measures)
      implements Function<String, SparkExecutorTask.Answer> {

    /** An executor, its release of Zerohop, and its findings: none if it is not the one meant. */
    record Answer(String executorId, String version, List<Finding> findings, List<Rate> rates)
        implements Serializable {}

    @Override
    public Answer call(final String meant) {
      final SparkEnv env = SparkEnv.get();
      final Examination examination = new Examination();
      if (env.executorId().equals(meant)) {
        final String host = env.blockManager().blockManagerId().host();
        Machine.examine(examination, settings(env.conf()), host, measures);
        SparkChecks.ofExecutor(
            examination,
            env.conf(),
            all.stream().filter(other -> !other.executorId().equals(meant)).toList());
      }
      final Notes notes = examination.notes();
      return new Answer(env.executorId(), Report.version(), notes.findings(), notes.rates());
    }

    static Settings settings(final SparkConf conf) {
      return Settings.of(
          Arrays.stream(conf.getAll()).collect(Collectors.toMap(Tuple2::_1, Tuple2::_2)));
    }
  }

  /** The application of {@code spark-submit --class io.zerohop.spark.Doctor}. */
  @Command(
      name = "spark-submit --class io.zerohop.spark.Doctor zerohop-spark.jar",
      mixinStandardHelpOptions = true,
      description = "Says why shuffles are not as fast as they could be on this cluster.",
      exitCodeOnInvalidInput = DoctorCommand.INVALID,
      exitCodeOnExecutionException = DoctorCommand.BROKEN)
  public static final class SparkCommand implements Callable<Integer> {
    @Mixin private DoctorOptions options;

    private SparkCommand() {}

    /** Runs it, with the settings that spark-submit has left. */
    public static int run(final String[] arguments) {
      return new CommandLine(new SparkCommand()).execute(arguments);
    }

    @Override
    public Integer call() throws InterruptedException {
      final SparkConf conf = new SparkConf();
      conf.setIfMissing("spark.app.name", "Zerohop's doctor");
      final SparkContext context;
      try {
        context = new SparkContext(conf);
      } catch (final Exception e) {
        // Zerohop stops applications that cannot work. Scala throws what it does not declare.
        return options.print(refused(conf, e));
      }
      try {
        return options.print(new SparkApplication(context, options.measures()).examine());
      } finally {
        context.stop();
      }
    }

    private static Report refused(final SparkConf conf, final Exception why) {
      Throwable cause = why;
      while (cause.getCause() != null && cause.getCause() != cause) {
        cause = cause.getCause();
      }
      final Examination driver = new Examination();
      SparkChecks.ofDriver(driver, conf);
      final List<Finding> findings = driver.notes().findings();
      findings.add(
          0,
          Item.MANAGER.fail(
              Message.of("the application does not start")
                  .because(cause)
                  .orRemedy("see the driver's log")));
      return new Report(List.of(new Report.Section("driver", findings, List.of())));
    }
  }
}
