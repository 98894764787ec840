package io.zerohop.bench;

import io.zerohop.cluster.Installation;
import io.zerohop.cluster.TwoNodes;
import io.zerohop.workload.ClusterShape;
import io.zerohop.workload.Contender;
import io.zerohop.workload.NodeSite;
import io.zerohop.workload.Testbed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** What all benchmarks on clusters can be told: the clusters, and who is compared. */
final class ClusterOptions {
  @Option(
      names = "--executors",
      paramLabel = "N",
      defaultValue = "2",
      description = "executor JVMs of each cluster (default: ${DEFAULT-VALUE})")
  private int executors;

  @Option(
      names = "--executor-cores",
      paramLabel = "N",
      defaultValue = "1",
      description = "tasks at a time in an executor (default: ${DEFAULT-VALUE})")
  private int executorCores;

  @Option(
      names = "--executor-memory",
      paramLabel = "MIB",
      defaultValue = "2048",
      description = "heap of an executor (default: ${DEFAULT-VALUE})")
  private int executorMemoryMib;

  @Option(
      names = "--local-dir",
      paramLabel = "DIR",
      defaultValue = "/dev/shm",
      description = "where sort shuffle's files go (default: ${DEFAULT-VALUE}, memory)")
  private Path localDir;

  @Option(
      names = "--conf",
      paramLabel = "KEY=VALUE",
      description = "a Spark setting for all contenders; may be repeated")
  private Map<String, String> conf = Map.of();

  @Option(
      names = "--contenders",
      split = ",",
      paramLabel = "SHUFFLE",
      description = "what to compare (default: all that the benchmark is about)")
  private List<String> contenders = List.of();

  @Mixin private RunOptions run;

  /**
   * A testbed.
   *
   * @param part names its folders apart
   * @param conf what the benchmark sets for all contenders
   */
  Testbed testbed(final String part, final Map<String, String> conf) throws IOException {
    return new Testbed(Installation.in(run.project()), shape(part, conf), files(part));
  }

  /** One between two nodes, for so many contenders at once. */
  Testbed testbed(
      final String part, final Map<String, String> conf, final TwoNodes nodes, final int contenders)
      throws IOException {
    final Installation installation = Installation.in(run.project());
    final ClusterShape shape = shape(part, conf);
    final NodeSite site = NodeSite.start(nodes, installation, shape, contenders);
    return new Testbed(installation, shape, files(part), site);
  }

  private ClusterShape shape(final String part, final Map<String, String> conf) throws IOException {
    final Path local = localDir.resolve(run.folder().getFileName()).resolve(part);
    Files.createDirectories(local);
    return new ClusterShape(executors, executorCores, executorMemoryMib, local, conf);
  }

  private Path files(final String part) throws IOException {
    return Files.createDirectories(run.folder().resolve(part));
  }

  /** What the user sets for all contenders. */
  Map<String, String> conf() {
    return conf;
  }

  List<Contender> contenders(final Contender... defaults) {
    return contenders.isEmpty()
        ? List.of(defaults)
        : contenders.stream().map(Contender::labelled).toList();
  }

  Measurement measurement(final String bench, final Map<String, Object> chosen) {
    final Map<String, Object> setting = new LinkedHashMap<>(chosen);
    setting.put("executors", executors);
    setting.put("executor_cores", executorCores);
    setting.put("executor_memory_bytes", (long) executorMemoryMib << 20);
    setting.put("local_dir", localDir.toString());
    setting.put("conf", conf);
    return run.measurement(bench, setting);
  }

  Path out(final String bench) {
    return run.out(bench);
  }
}
