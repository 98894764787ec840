package io.zerohop.bench;

import io.zerohop.cluster.TwoNodes;
import io.zerohop.workload.ClusterShape;
import io.zerohop.workload.Contender;
import io.zerohop.workload.Testbed;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** What the benchmarks can be told in which everything is shuffled. */
final class BenchOptions {
  @Option(
      names = "--partitions",
      paramLabel = "N",
      defaultValue = "32",
      description = "spark.sql.shuffle.partitions (default: ${DEFAULT-VALUE})")
  private int partitions;

  @Mixin private ClusterOptions cluster;

  /** A testbed with folders of its own; {@code part} names them apart. */
  Testbed testbed(final String part) throws IOException {
    return cluster.testbed(part, conf());
  }

  /** One between two nodes, for so many contenders at once, with further settings. */
  Testbed testbed(
      final String part,
      final TwoNodes nodes,
      final int contenders,
      final Map<String, String> further)
      throws IOException {
    final Map<String, String> conf = new HashMap<>(further);
    conf.putAll(conf());
    return cluster.testbed(part, conf, nodes, contenders);
  }

  private Map<String, String> conf() {
    return ClusterShape.allShuffled(partitions, cluster.conf());
  }

  List<Contender> contenders(final Contender... defaults) {
    return cluster.contenders(defaults);
  }

  Measurement measurement(final String bench, final Map<String, Object> chosen) {
    final Map<String, Object> setting = new LinkedHashMap<>(chosen);
    setting.put("shuffle_partitions", partitions);
    return cluster.measurement(bench, setting);
  }

  Path out(final String bench) {
    return cluster.out(bench);
  }
}
