package io.zerohop.spark;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.conf.Config;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** The configuration of a node that tests have for themselves. */
public final class TestNode {
  private TestNode() {}

  /**
   * What users have who set nothing, but that it connects to nobody by itself.
   *
   * @param base folder of its sockets
   */
  public static ShuffleNode.Setup config(final Path base) {
    return config(base, "1");
  }

  /** The same of any executor. */
  public static ShuffleNode.Setup config(final Path base, final String executorId) {
    return new ShuffleNode.Setup(
            Config.defaults(),
            "app-test",
            executorId,
            "a secret of this test".getBytes(StandardCharsets.UTF_8))
        .set("socket.dir", base);
  }
}
