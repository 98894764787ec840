package io.zerohop.spark.rdmaproof;

import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.conf.Plugins;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import io.zerohop.spark.rdmaproof.ProofLine.Check;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import io.zerohop.spark.rdmaproof.ProofLine.Result;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A job on a Spark cluster with executors on both hosts, started by {@code spark-submit}. It
 * shuffles rows, or RAPIDS' batches if the settings name its plugin. Immutable.
 *
 * @param conf settings beside those that Zerohop needs
 * @param end of all of the proof
 */
record SparkJob(
    Path home, String master, Path jar, long rows, Map<String, String> conf, Deadline end) {
  private static final String WHAT = "a repartition whose rows are right, and come by UCX";

  SparkJob {
    conf = Map.copyOf(conf);
  }

  private List<String> command() {
    final Map<String, String> settings = new LinkedHashMap<>();
    settings.put(Plugins.KEY, Plugins.ZEROHOP);
    settings.put("spark.shuffle.manager", ZerohopConf.SHUFFLE_MANAGER);
    settings.put("spark.driver.extraClassPath", jar.toString());
    settings.put("spark.executor.extraClassPath", jar.toString());
    settings.putAll(conf);
    settings.put("spark.zerohop.ucx.trustedNetwork", "true"); // The command line has said so.
    final List<String> command = new ArrayList<>();
    command.add(home.resolve("bin/spark-submit").toString());
    command.addAll(List.of("--master", master, "--class", ProofApplication.class.getName()));
    settings.forEach((key, value) -> command.addAll(List.of("--conf", key + "=" + value)));
    command.addAll(List.of(jar.toString(), Long.toString(rows)));
    return command;
  }

  ProofLine run() {
    final ProcessBuilder builder =
        new ProcessBuilder(command()).redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().putIfAbsent("SPARK_HOME", home.toString());
    final List<String> lines = new ArrayList<>();
    Process process = null;
    try {
      process = builder.start();
      final InputStream from = process.getInputStream();
      final Thread reading = Threads.daemon(() -> collect(from, lines), "proof-job");
      reading.start();
      if (!process.waitFor(end.remainingMillis(), TimeUnit.MILLISECONDS)) {
        return failed("it did not end within the time of the proof (--limit)");
      }
      reading.join(1000);
      return judge(process.exitValue(), lines);
    } catch (final IOException e) {
      return failed("spark-submit cannot be started: " + e.getMessage());
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ProofException("interrupted", e);
    } finally {
      if (process != null) {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
      }
    }
  }

  private static void collect(final InputStream from, final List<String> lines) {
    ChildProcess.lines(
        from,
        line -> {
          if (line.startsWith(GetWorker.MARK)) {
            synchronized (lines) {
              lines.add(line.substring(GetWorker.MARK.length()));
            }
          }
        });
  }

  /**
   * Judges a job by its line: whether rows are right, in what they came, and bytes by each path.
   */
  static ProofLine judge(final int exit, final List<String> lines) {
    final List<String> said;
    synchronized (lines) {
      said = lines.isEmpty() ? List.of() : ProofWords.split(lines.get(lines.size() - 1));
    }
    if (exit != 0 || said.size() < 3) {
      return failed("spark-submit has ended with exit status " + exit + "; see above");
    }
    final String bytes = String.join(", ", said.subList(2, said.size()));
    final boolean right = said.get(0).equals("right");
    final long byUcx =
        said.stream()
            .filter(it -> it.startsWith("ucx "))
            .mapToLong(it -> Long.parseLong(it.substring("ucx ".length())))
            .sum();
    final boolean others =
        said.stream()
            .filter(it -> it.startsWith("sent ") || it.startsWith("staged "))
            .anyMatch(it -> !it.endsWith(" 0"));
    final String why = said.get(1) + "; bytes by path: " + bytes;
    return Check.JOB
        .found(
            WHAT, Result.of(right && byUcx > 0 && !others), (right ? "" : "rows are wrong; ") + why)
        .measured(
            0, right ? (double) Math.max(1, byUcx) : 0, right ? "bytes by UCX" : "right rows");
  }

  private static ProofLine failed(final String why) {
    return Check.JOB.found(WHAT, Result.FAILED, why).measured(0, 0, "right rows");
  }
}
