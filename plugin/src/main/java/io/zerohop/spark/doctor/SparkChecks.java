package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.conf.Activation;
import io.zerohop.spark.conf.ManagerChoice;
import io.zerohop.spark.conf.NetworkTrust;
import io.zerohop.spark.conf.Plugins;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.executor.OtherNodes;
import io.zerohop.spark.rapids.setup.Preflight;
import io.zerohop.spark.rapids.setup.RapidsMode;
import io.zerohop.spark.sizing.PoolSizing;
import io.zerohop.spark.staged.BlockTransferTransport.PortProbe;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.storage.BlockManagerId;
import org.jspecify.annotations.Nullable;

/** The checks that need Spark's classes. Nothing refers to this class where they are not there. */
final class SparkChecks {
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final Duration PROBE = Duration.ofSeconds(2);

  private SparkChecks() {}

  static void ofSettings(final Examination examination, final Settings settings) {
    examination.run(
        Item.SPARK,
        LIMIT,
        notes -> {
          final SparkConf conf = new SparkConf(false);
          settings.values().forEach(conf::set);
          check(conf, null, NamedJars.with(settings, Preflight::lookAtVersion)).run(notes);
        });
  }

  static void ofDriver(final Examination examination, final SparkConf conf) {
    examination.run(Item.SPARK, LIMIT, notes -> ofProcess(conf).run(notes));
  }

  /** Checks an application's driver, without items that only executors' machines know. */
  static void ofRunningDriver(final Examination examination, final SparkConf conf) {
    examination.run(Item.SPARK, LIMIT, notes -> ofProcess(conf).judge(notes));
  }

  private static SparkCheck ofProcess(final SparkConf conf) {
    return check(conf, ManagerChoice.inPlace(), Preflight.look());
  }

  private static SparkCheck check(
      final SparkConf conf, final @Nullable String manager, final Preflight seen) {
    final boolean local = conf.get("spark.master", "").matches("local(\\[.*\\])?");
    final String heap = local ? "spark.driver.memory" : "spark.executor.memory";
    return new SparkCheck(conf, manager, version(), seen, conf.getSizeAsBytes(heap, "1g"));
  }

  /** Checks an executor, and whether it reaches the others' block managers. */
  static void ofExecutor(
      final Examination examination, final SparkConf conf, final List<BlockManagerId> others) {
    final long heap = Runtime.getRuntime().maxMemory();
    examination.run(Item.SIZES, LIMIT, notes -> SparkCheck.sizes(conf, heap, notes));
    examination.run(
        Item.REACH, LIMIT.plus(PROBE.multipliedBy(others.size())), notes -> reach(notes, others));
  }

  static void reach(final Notes notes, final List<BlockManagerId> others) {
    int answering = 0;
    for (final BlockManagerId other : others) {
      if (PortProbe.answers(other.host(), other.port(), PROBE, Clock.system())) {
        answering++;
      } else {
        notes.add(
            Item.REACH.fail(
                "port "
                    + other.port()
                    + " of executor "
                    + other.executorId()
                    + " on "
                    + other.host()
                    + " does not answer from here",
                "open it in the firewall or network policy (spark.blockManager.port and"
                    + " spark.zerohop.port give executors fixed ports, and those behind them)"));
      }
    }
    if (others.isEmpty()) {
      notes.add(Item.REACH.skip("there is no other executor"));
    } else if (answering == others.size()) {
      notes.add(Item.REACH.ok(answering + " other executors, all reached"));
    }
  }

  static String version() {
    return org.apache.spark.package$.MODULE$.SPARK_VERSION();
  }

  /**
   * The jars that an application's settings put on its driver's class path, such as RAPIDS'. Where
   * no application runs they are looked at as if it did.
   */
  static final class NamedJars {
    private static final String ALL = "*";

    private NamedJars() {}

    /** What somebody finds who looks for resources by the thread's class loader. */
    static <T> T with(final Settings settings, final Supplier<T> look) throws IOException {
      final Thread thread = Thread.currentThread();
      final ClassLoader before = thread.getContextClassLoader();
      try (URLClassLoader named = new URLClassLoader(jars(settings), before)) {
        thread.setContextClassLoader(named);
        return look.get();
      } finally {
        thread.setContextClassLoader(before);
      }
    }

    private static URL[] jars(final Settings settings) throws IOException {
      final List<URL> jars = new ArrayList<>();
      for (final String entry :
          split(settings, "spark.driver.extraClassPath", File.pathSeparator)) {
        if (entry.endsWith(ALL)) {
          addAll(jars, Path.of(entry.substring(0, entry.length() - ALL.length())));
        } else {
          jars.add(Path.of(entry).toUri().toURL());
        }
      }
      for (final String entry : split(settings, "spark.jars", ",")) {
        if (!entry.contains("://")) { // What lies elsewhere is not fetched.
          jars.add(Path.of(entry.replaceFirst("^(file|local):", "")).toUri().toURL());
        }
      }
      return jars.toArray(URL[]::new);
    }

    private static List<String> split(
        final Settings settings, final String key, final String separator) {
      final String value = settings.get(key);
      return value == null
          ? List.of()
          : Stream.of(value.split(separator))
              .map(String::trim)
              .filter(it -> !it.isEmpty())
              .toList();
    }

    private static void addAll(final List<URL> jars, final Path folder) throws IOException {
      if (!Files.isDirectory(folder)) {
        return;
      }
      for (final Path file : ForeignCode.jars(folder)) {
        jars.add(file.toUri().toURL());
      }
    }
  }

  /**
   * A check of what an application's settings come to, by the classes that decide it when it
   * starts.
   *
   * @param running class name of the application's shuffle manager; absent before it starts
   * @param seen what the driver finds out of the jars
   * @param heapBytes most heap of an executor
   */
  record SparkCheck(
      SparkConf conf, @Nullable String running, String spark, Preflight seen, long heapBytes)
      implements Check {
    /** First parts of the releases that the jar is tested with, oldest and newest. */
    static final List<String> TESTED = List.of("3.5", "4.0", "4.1", "4.2");

    private static final String KEEP_AUTHENTICATION =
        "keep it on where others reach Spark's ports: GPU shuffles then go through host memory;"
            + " without it (spark.authenticate=false) only on a network of trusted programs"
            + " (SECURITY.md)";
    private static final String OTHER_SPARK =
        "use an Apache Spark of docs/compatibility.md, or go without it";
    private static final long MIB = 1L << 20;

    /** Copies the configuration, which a check may add to. */
    SparkCheck {
      conf = conf.clone();
    }

    @Override
    public void run(final Notes notes) {
      if (judge(notes)) {
        sizes(conf, heapBytes, notes);
      }
    }

    /** Judges settings and jars, without the machine; says whether keys have values to go by. */
    boolean judge(final Notes notes) {
      notes.add(sparkVersion());
      sparkMembers(SparkProbe.here(), notes);
      notes.add(rapidsVersion());
      final Finding manager = manager();
      notes.add(manager);
      if (manager.verdict() == Verdict.FAIL) {
        return false;
      }
      notes.add(stepsAside());
      notes.add(gpuShuffles());
      notes.add(reduceTasks());
      notes.add(otherNodes());
      return true;
    }

    Finding sparkVersion() {
      return TESTED.stream().anyMatch(known -> spark.startsWith(known + "."))
          ? Item.SPARK.ok("Spark " + spark)
          : Item.SPARK.warn(
              "Spark " + spark + " is not one of " + TESTED + ", with which this jar is tested",
              "run one of these, or a release of Zerohop that knows it");
    }

    /** Notes each feature for which this Spark, mostly a vendor's, lacks something. */
    static void sparkMembers(final SparkProbe probe, final Notes notes) {
      boolean whole = true;
      for (final SparkFeature feature : SparkFeature.values()) {
        final Message lacks = probe.sentence(feature);
        if (lacks != null) {
          whole = false;
          final Message found = lacks.remedy(OTHER_SPARK);
          notes.add(
              feature == SparkFeature.SHUFFLE
                  ? Item.SPARK_MEMBERS.fail(found)
                  : Item.SPARK_MEMBERS.warn(found));
        }
      }
      if (whole) {
        notes.add(Item.SPARK_MEMBERS.ok("this Spark has all that Zerohop uses of it"));
      }
    }

    private Finding rapidsVersion() {
      final boolean wanted = names(conf, Plugins.RAPIDS);
      if (seen.rapids() == null) {
        return wanted
            ? Item.RAPIDS.warn(
                "RAPIDS' plugin is configured, and its jar is not on this class path",
                "put rapids-4-spark into spark.driver.extraClassPath and"
                    + " spark.executor.extraClassPath, or into $SPARK_HOME/jars")
            : Item.RAPIDS.skip("RAPIDS is not configured");
      }
      final Message obstacle = RapidsMode.releaseObstacle(seen);
      if (obstacle != null) {
        return Item.RAPIDS.fail(
            Message.of("its shuffles go through host memory").because(obstacle));
      }
      final String what = "RAPIDS Accelerator " + seen.rapids();
      return RapidsMode.isBound(seen.rapids())
          ? Item.RAPIDS.ok(what + ", a release whose jar was checked")
          : Item.RAPIDS.warn(
              what + " is of a release whose jar was not checked with Zerohop",
              "compare some results with the CPU's, or use a rapids-4-spark jar of a release that"
                  + " docs/compatibility.md knows by its jar");
    }

    private static boolean names(final SparkConf conf, final String plugin) {
      return Plugins.has(key -> conf.get(key, null), plugin);
    }

    private Finding manager() {
      final boolean enabled;
      try {
        enabled = ZerohopConf.of(conf).enabled();
      } catch (final IllegalArgumentException e) {
        return Item.MANAGER.fail(
            String.valueOf(e.getMessage()), "see docs/configuration.md for the values");
      }
      if (!enabled) {
        return Item.MANAGER.warn(
            "spark.zerohop.enabled is false: no shuffle uses Zerohop",
            "remove it, or set it to true");
      }
      final String manager = running == null ? ManagerChoice.foresee(conf, spark) : running;
      final Message obstacle = ManagerChoice.obstacle(conf, manager, spark);
      if (obstacle != null) {
        return Item.MANAGER.warn(obstacle);
      }
      final List<String> unknown = ZerohopConf.unknown(conf);
      return unknown.isEmpty()
          ? Item.MANAGER.ok("the shuffle manager is Zerohop's, and every key is known")
          : Item.MANAGER.warn(
              "unknown keys: " + unknown, "see docs/configuration.md for their names");
    }

    private Finding stepsAside() {
      final Message obstacle = Activation.obstacle(conf);
      return obstacle == null
          ? Item.STEPS_ASIDE.ok("nothing makes Zerohop leave shuffles to Spark")
          : Item.STEPS_ASIDE.fail(
              Message.of("Zerohop leaves all shuffles to Spark").because(obstacle));
    }

    private Finding gpuShuffles() {
      if (!names(conf, Plugins.RAPIDS)) {
        return Item.GPU_SHUFFLES.skip("RAPIDS' plugin is not in spark.plugins");
      }
      if (!names(conf, Plugins.ZEROHOP)) {
        return Item.GPU_SHUFFLES.warn(
            "RAPIDS' shuffles go through host memory, since its plugin is there without ours",
            "set spark.plugins=" + Plugins.RAPIDS + "," + Plugins.ZEROHOP);
      }
      if (!RapidsMode.concerns(conf)) {
        return Item.GPU_SHUFFLES.skip("Zerohop is not the shuffle manager");
      }
      final Message obstacle = RapidsMode.obstacle(conf, seen);
      return obstacle == null
          ? Item.GPU_SHUFFLES.ok("RAPIDS' shuffles stay in GPU memory")
          : Item.GPU_SHUFFLES.warn(
              Message.of("RAPIDS' shuffles go through host memory")
                  .because(obstacle)
                  .orRemedy(
                      conf.getBoolean("spark.authenticate", false) ? KEEP_AUTHENTICATION : ""));
    }

    private Finding reduceTasks() {
      return !RapidsMode.concerns(conf)
          ? Item.REDUCE_TASKS.skip("RAPIDS' shuffles are not Zerohop's here")
          : Item.REDUCE_TASKS.ok(RapidsMode.reduceTasks(conf));
    }

    private Finding otherNodes() {
      final Message obstacle = OtherNodes.obstacle(conf);
      if (obstacle == null) {
        return Item.OTHER_NODES.ok("other nodes are read by UCX, where it can be used");
      }
      final Message unsent = OtherNodes.sendObstacle(conf);
      final Message way =
          unsent == null
              ? Message.of("blocks of other nodes are sent over Spark's connections, not by UCX")
                  .because(obstacle)
              : Message.of("blocks of other nodes are staged")
                  .because(unsent.text() + ", and " + obstacle.text());
      if (NetworkTrust.encryptionDemandedBy(key -> conf.get(key, null)).isPresent()
          && ZerohopConf.of(conf).ucx().trustedNetwork()) {
        return Item.OTHER_NODES.warn(
            way.remedy("choose: spark.zerohop.ucx.trustedNetwork=false, or no encryption"));
      }
      return unsent == null
          ? Item.OTHER_NODES.found(Verdict.OK, way)
          : Item.OTHER_NODES.warn(
              way.remedy(
                  SparkProbe.here().has(SparkFeature.SENT) ? OtherNodes.SEND_REMEDY : OTHER_SPARK));
    }

    /** What {@code auto} comes to here. */
    static void sizes(final SparkConf conf, final long heapBytes, final Notes notes) {
      final PoolSizing.Plan plan = PoolSizing.plan(conf, heapBytes);
      final String host =
          plan.bytes() / MIB
              + " MiB of shared memory for an executor with "
              + heapBytes / MIB
              + " MiB of heap";
      notes.add(
          plan.warning() == null
              ? Item.SIZES.ok(host)
              : Item.SIZES.warn(Message.of(host).because(plan.warning())));
      try {
        if (names(conf, Plugins.RAPIDS)) {
          notes.add(
              Item.SIZES.ok(PoolSizing.devicePoolBytes(conf) / MIB + " MiB of its GPU's memory"));
        }
      } catch (final ZerohopException e) {
        notes.add(Item.SIZES.warn(Message.of(e)));
      }
    }
  }
}
