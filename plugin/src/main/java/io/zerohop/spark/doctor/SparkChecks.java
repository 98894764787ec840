package io.zerohop.spark.doctor;

import io.zerohop.device.posix.Clock;
import io.zerohop.spark.blocktransfer.PortProbe;
import io.zerohop.spark.conf.ManagerChoice;
import io.zerohop.spark.rapids.setup.Preflight;
import java.time.Duration;
import java.util.List;
import org.apache.spark.SparkConf;

/** The checks that need Spark's classes. Nothing refers to this class where they are not there. */
final class SparkChecks {
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final Duration PROBE = Duration.ofSeconds(2);

  private SparkChecks() {}

  /** Checks an application's settings, before it runs. */
  static void ofSettings(final Examination examination, final Settings settings) {
    examination.run(
        Item.SPARK,
        LIMIT,
        notes -> {
          final SparkConf conf = new SparkConf(false);
          settings.all().forEach(conf::set);
          check(conf, null, NamedJars.with(settings, Preflight::lookAtVersion)).run(notes);
        });
  }

  /** Checks an application's driver. */
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
      final SparkConf conf, final String manager, final Preflight seen) {
    final boolean local = conf.get("spark.master", "").matches("local(\\[.*\\])?");
    final String heap = local ? "spark.driver.memory" : "spark.executor.memory";
    return new SparkCheck(conf, manager, version(), seen, conf.getSizeAsBytes(heap, "1g"));
  }

  /**
   * Checks an executor.
   *
   * @param others where the others' block managers listen, as host and port
   */
  static void ofExecutor(
      final Examination examination, final SparkConf conf, final List<Address> others) {
    final long heap = Runtime.getRuntime().maxMemory();
    examination.run(Item.SIZES, LIMIT, notes -> SparkCheck.sizes(conf, heap, notes));
    examination.run(
        Item.REACH, LIMIT.plus(PROBE.multipliedBy(others.size())), notes -> reach(notes, others));
  }

  /** The address of a block manager. */
  record Address(String executorId, String host, int port) implements java.io.Serializable {}

  static void reach(final Notes notes, final List<Address> others) {
    int answering = 0;
    for (final Address other : others) {
      if (PortProbe.answers(other.host(), other.port(), PROBE, Clock.system())) {
        answering++;
      } else {
        notes.add(
            Finding.fail(
                Item.REACH,
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
      notes.add(Finding.skip(Item.REACH, "there is no other executor"));
    } else if (answering == others.size()) {
      notes.add(Finding.ok(Item.REACH, answering + " other executors, all reached"));
    }
  }

  static String version() {
    return org.apache.spark.package$.MODULE$.SPARK_VERSION();
  }
}
