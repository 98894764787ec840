package io.zerohop.workload;

import io.zerohop.cluster.Installation;
import io.zerohop.cluster.SparkApplication;
import io.zerohop.cluster.Submission;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** This machine: each application brings workers of its own, which end with it. */
final class LocalSite implements Site {
  private final Installation installation;
  private final ClusterShape shape;
  private final Path run;

  /**
   * Takes what the build has made.
   *
   * @param run a folder in which each application gets a home
   */
  LocalSite(final Installation installation, final ClusterShape shape, final Path run) {
    this.installation = installation;
    this.shape = shape;
    this.run = run;
  }

  @Override
  public String master() {
    return shape.master();
  }

  @Override
  public Map<String, String> conf() {
    return Map.of();
  }

  @Override
  public SparkApplication start(final String name, final Submission submission, final Path log)
      throws IOException {
    return SparkApplication.start(
        name, installation.sparkHome().linkedAt(run.resolve("spark-" + name)), submission, log);
  }

  @Override
  public void close() {
    // Nothing was started but the applications.
  }
}
