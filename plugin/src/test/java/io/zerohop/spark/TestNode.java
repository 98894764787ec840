package io.zerohop.spark;

import io.zerohop.shuffle.NodeConfig;
import io.zerohop.spark.executor.NodeSettings;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.spark.SparkConf;

/** The configuration of a node that tests have for themselves. */
public final class TestNode {
  private TestNode() {}

  /**
   * What users have who set nothing, but that it connects to nobody by itself.
   *
   * @param base folder of its sockets
   */
  public static NodeConfig.Builder config(final Path base) {
    return NodeSettings.of(new SparkConf(false))
        .appId("app-test")
        .executorId("1")
        .socketBase(base)
        .secret("a secret of this test".getBytes(StandardCharsets.UTF_8))
        .neighbours(false);
  }
}
