package io.zerohop.workload;

import io.zerohop.cluster.Installation;
import io.zerohop.cluster.NodeCluster;
import io.zerohop.cluster.NodeCluster.WorkerShape;
import io.zerohop.cluster.SparkApplication;
import io.zerohop.cluster.Submission;
import io.zerohop.cluster.TwoNodes;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/**
 * Two nodes, between which every application has its executors, half on each. One cluster serves
 * all applications, so that they have the same workers and the same link.
 */
public final class NodeSite implements Site {
  private final TwoNodes nodes;
  private final NodeCluster cluster;
  private final Map<String, String> conf;

  private NodeSite(
      final TwoNodes nodes, final NodeCluster cluster, final Map<String, String> conf) {
    this.nodes = nodes;
    this.cluster = cluster;
    this.conf = conf;
  }

  /**
   * Starts the cluster; its logs and files lie in the shape's folder.
   *
   * @param nodes stay the caller's
   * @param applications how many there may be at a time
   */
  public static NodeSite start(
      final TwoNodes nodes,
      final Installation installation,
      final ClusterShape shape,
      final int applications)
      throws IOException {
    if (shape.executors() % 2 != 0) {
      throw new IllegalArgumentException(
          shape.executors() + " executors cannot be halved between two nodes");
    }
    final int each = shape.executors() / 2 * applications;
    final WorkerShape worker =
        new WorkerShape(each * shape.coresPerExecutor(), each * shape.executorMemoryMib());
    final NodeCluster cluster =
        NodeCluster.start(
            nodes,
            installation,
            shape.localDir(),
            worker,
            worker,
            Map.of("spark.master.rest.enabled", "false"));
    return new NodeSite(
        nodes,
        cluster,
        Map.of(
            // Else the first application would take what is the others'.
            "spark.cores.max", Integer.toString(shape.executors() * shape.coresPerExecutor())));
  }

  @Override
  public String master() {
    return cluster.master();
  }

  @Override
  public Map<String, String> conf() {
    return conf;
  }

  @Override
  public SparkApplication start(final String name, final Submission submission, final Path log)
      throws IOException {
    return SparkApplication.start(name, cluster.home(), nodes.first(), submission, log);
  }

  @Override
  public void close() {
    cluster.close();
  }
}
