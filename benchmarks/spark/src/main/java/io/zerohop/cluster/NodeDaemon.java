package io.zerohop.cluster;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.deploy.master.Master;
import org.apache.spark.deploy.worker.Worker;

/**
 * A master or a worker of Spark that ends, with all that it has started, when its standard input
 * does: none outlives the process that started it, however that ends.
 */
final class NodeDaemon {
  static final String MASTER = "master";
  static final String WORKER = "worker";

  private NodeDaemon() {}

  /** Takes what it shall be, then the arguments that Spark's own program takes. */
  public static void main(final String[] args) {
    final Thread end = new Thread(NodeDaemon::endWithInput, "end-with-input");
    end.setDaemon(true);
    end.start();
    final String[] own = Arrays.copyOfRange(args, 1, args.length);
    if (args[0].equals(MASTER)) {
      Master.main(own);
    } else {
      Worker.main(own);
    }
  }

  private static void endWithInput() {
    try {
      while (System.in.read() >= 0) {
        // Nobody says anything; this is only about the end.
      }
    } catch (final IOException e) {
      System.err.println("standard input cannot be read any more: " + e);
    }
    System.exit(0);
  }
}
