package io.zerohop.spark.doctor;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.function.Function;
import scala.Tuple2;

/** Examines the executor in which it runs, if that is the requested one. */
final class SparkExecutorTask implements Function<String, SparkExecutorTask.Answer> {
  private static final long serialVersionUID = 1L;

  private final List<SparkChecks.Address> all;
  private final boolean measures;

  /**
   * @param all block managers of all executors; a serializable list
   * @param measures whether to measure rates, too
   */
  SparkExecutorTask(final List<SparkChecks.Address> all, final boolean measures) {
    this.all = all;
    this.measures = measures;
  }

  /**
   * An executor's findings.
   *
   * @param executorId who it is
   * @param version its release of Zerohop
   * @param findings of its checks; empty if it is not the one that was meant
   */
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
    final Map<String, String> values = new TreeMap<>();
    for (final Tuple2<String, String> setting : conf.getAll()) {
      values.put(setting._1(), setting._2());
    }
    return Settings.of(values);
  }
}
