package io.zerohop.workload;

import io.zerohop.cluster.SparkApplication;
import io.zerohop.cluster.Submission;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** Where contenders' applications run. */
public interface Site extends AutoCloseable {
  /** The URL of a master that gives each application the executors it shall have. */
  String master();

  /** What every application needs to run here. */
  Map<String, String> conf();

  /**
   * Submits an application, which the caller closes.
   *
   * @param log the file that gets what it logs
   */
  SparkApplication start(String name, Submission submission, Path log) throws IOException;

  /** Ends what applications ran on. */
  @Override
  void close();
}
