package io.zerohop.workload;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.cluster.ClusterException;
import io.zerohop.cluster.Installation;
import io.zerohop.cluster.SparkApplication;
import io.zerohop.cluster.Submission;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Starts one Spark application per contender, each on a cluster of its own and all alike but for
 * the way to shuffle, and asks them for workloads. Applications stay up between workloads, so that
 * contenders can take turns.
 *
 * <p>All files lie in the run's folder, which belongs to the caller. Not for several threads,
 * except {@link #close}, which is also done if this process is told to end before.
 */
public final class Testbed implements AutoCloseable {
  private static final Duration START_LIMIT = Duration.ofMinutes(3);
  private static final Duration GENERATE_LIMIT = Duration.ofMinutes(30);
  private static final Duration QUERY_LIMIT = Duration.ofMinutes(15);
  private static final String DRIVER_MEMORY = "1g"; // Spark's default.
  private static final String GENERATOR_MEMORY = "2g";

  private final Installation installation;
  private final ClusterShape shape;
  private final Path run;
  private final LocalSite local;
  private final Site site;
  private final Map<Integer, SparkApplication> applications = new TreeMap<>();
  private final Map<SparkApplication, String> pages = new HashMap<>();
  private final List<SparkApplication> started = new CopyOnWriteArrayList<>();
  private final ObjectMapper json = new ObjectMapper();
  private final Thread closeAtExit = new Thread(this::close, "stop-applications");
  private Tables tables = Tables.TPCH;
  private Path data;

  /**
   * Takes what the build has made, for clusters on this machine.
   *
   * @param run an empty folder for data, logs and results
   */
  public Testbed(final Installation installation, final ClusterShape shape, final Path run) {
    this(installation, shape, run, null);
  }

  /**
   * The same for contenders elsewhere.
   *
   * @param site where contenders run, which is closed with this; null for this machine
   */
  public Testbed(
      final Installation installation, final ClusterShape shape, final Path run, final Site site) {
    this.installation = installation;
    this.shape = shape;
    this.run = run.toAbsolutePath();
    this.data = this.run.resolve("data");
    this.local = new LocalSite(installation, shape, this.run);
    this.site = site == null ? local : site;
    Runtime.getRuntime().addShutdownHook(closeAtExit);
  }

  /** Writes TPC-H's tables, by an application of its own that ends afterwards. */
  public void generate(final double scale) throws IOException, InterruptedException {
    generate(Tables.TPCH, data, scale);
  }

  /**
   * Takes tables from a folder and writes them if it is not there. One that is there is taken to
   * have all of them.
   */
  public void use(final Tables wanted, final Path folder, final double scale)
      throws IOException, InterruptedException {
    tables = wanted;
    data = folder.toAbsolutePath();
    if (!Files.isDirectory(data)) {
      // A run that breaks off leaves no folder that looks complete.
      final Path unfinished = data.resolveSibling(data.getFileName() + ".unfinished");
      generate(wanted, unfinished, scale);
      Files.move(unfinished, data);
    }
  }

  private void generate(final Tables wanted, final Path folder, final double scale)
      throws IOException, InterruptedException {
    final Map<String, String> conf = new HashMap<>(shape.commonConf(run));
    conf.put("spark.sql.parquet.compression.codec", "snappy");
    final Submission submission =
        new Submission(
            "local[*]",
            wanted.generator(),
            installation.applicationJar(),
            installation.applicationJars(),
            List.of(),
            GENERATOR_MEMORY,
            conf,
            List.of(folder.toString(), Double.toString(scale)));
    start(local, "generator", submission).await(GENERATE_LIMIT);
  }

  /** Where the tables lie. */
  public Path data() {
    return data;
  }

  /**
   * Starts a contender; {@link #awaitReady} says when it can be asked.
   *
   * @param lane what to call it, from 0; two lanes may run the same contender
   */
  public void start(final int lane, final Contender contender) throws IOException {
    final Map<String, String> conf = new HashMap<>(shape.clusterConf(run));
    conf.putAll(site.conf());
    conf.putAll(contender.conf());
    conf.putAll(shape.extraConf());
    final Submission submission =
        new Submission(
            site.master(),
            WorkloadApp.class.getName(),
            installation.applicationJar(),
            installation.applicationJars(),
            contender.needsPlugin() ? List.of(installation.zerohopJar()) : List.of(),
            conf.getOrDefault("spark.driver.memory", DRIVER_MEMORY),
            conf,
            Files.isDirectory(data) ? List.of(tables.name(), data.toString()) : List.of());
    final String name = lane + "-" + contender.label();
    final String nth = applications.containsKey(lane) ? "-again-" + started.size() : "";
    applications.put(lane, start(site, name + nth, submission));
  }

  /** Stops a contender that no longer answers, starts it anew, and waits until it is ready. */
  public void restart(final int lane, final Contender contender) throws IOException {
    applications.get(lane).close();
    start(lane, contender);
    awaitReady(applications.get(lane));
  }

  /** Waits until every started contender has its executors and has run a first small job. */
  public void awaitReady() {
    applications.values().forEach(this::awaitReady);
  }

  private void awaitReady(final SparkApplication application) {
    final String[] said = application.answer(START_LIMIT).split(" ");
    if (!said[0].equals(WorkloadApp.READY)) {
      throw new ClusterException(
          application.name() + " said '" + said[0] + "' before it was ready");
    }
    if (said.length > 1) {
      pages.put(application, said[1]);
    }
  }

  /** The address of Spark's UI of a contender that is ready; null if it has none. */
  public String page(final int lane) {
    return pages.get(applications.get(lane));
  }

  /**
   * Runs a workload once and keeps its rows.
   *
   * @return what it cost, also if it failed
   */
  public Outcome run(final int lane, final String workload) {
    return run(lane, workload, result(lane, workload));
  }

  /** The same with another place for its rows. */
  public Outcome run(final int lane, final String workload, final Path rows) {
    return ask(lane, new Question(workload, rows.toString()));
  }

  /** The same, but that nobody wants the rows. */
  public Outcome time(final int lane, final String workload) {
    return ask(lane, new Question(workload, null));
  }

  private Outcome ask(final int lane, final Question question) {
    try {
      final String answer =
          applications.get(lane).ask(json.writeValueAsString(question), QUERY_LIMIT);
      return json.readValue(answer, Outcome.class);
    } catch (final JsonProcessingException e) {
      throw new ClusterException("the answer about " + question.workload() + " cannot be read", e);
    }
  }

  /** Where a workload's rows are once it has run, an {@link Answer}. */
  public Path result(final int lane, final String workload) {
    return run.resolve("result-" + lane + "-" + workload.replace(':', '-') + ".gz");
  }

  /** Where its rows under faults go, so that those without stay. */
  public Path faultyResult(final int lane, final String workload) {
    return run.resolve("faulty-" + lane + "-" + workload.replace(':', '-') + ".gz");
  }

  /** The driver's process of a lane. */
  public ProcessHandle driver(final int lane) {
    return applications.get(lane).driver();
  }

  /** Stops every application that still runs, and what it ran on. */
  @Override
  public void close() {
    started.parallelStream().forEach(SparkApplication::close);
    site.close();
    try {
      Runtime.getRuntime().removeShutdownHook(closeAtExit);
    } catch (final IllegalStateException processEnds) {
      // Then it need not be removed: it runs already, or this is what it runs.
    }
  }

  private SparkApplication start(final Site on, final String name, final Submission submission)
      throws IOException {
    final SparkApplication application = on.start(name, submission, run.resolve(name + ".log"));
    started.add(application);
    return application;
  }
}
