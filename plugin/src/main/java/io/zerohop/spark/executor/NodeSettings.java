package io.zerohop.spark.executor;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.spark.conf.ZerohopConf;
import java.nio.file.Path;
import java.time.Duration;
import org.apache.spark.SparkConf;

/** Maps the user's keys, and their defaults, to the settings of a shuffle node. */
public final class NodeSettings {
  private NodeSettings() {}

  /**
   * All that keys say. What the executor knows is left to the caller: who it is, its secret, how
   * large its pools are, its GPU, cold storage and other nodes.
   */
  public static NodeConfig.Builder of(final SparkConf conf) {
    final String socketDir = ZerohopConf.SOCKET_DIR.get(conf);
    return NodeConfig.builder()
        .socketBase(ZerohopConf.AUTO.equals(socketDir) ? null : Path.of(socketDir))
        .neighbours(true)
        .segmentBytes(ZerohopConf.SEGMENT_SIZE.get(conf))
        .deviceSegmentBytes(ZerohopConf.DEVICE_SEGMENT_SIZE.get(conf))
        .deviceWindowBytes(ZerohopConf.DEVICE_WINDOW_SIZE.get(conf))
        .keepEmpty(Duration.ofMillis(ZerohopConf.SEGMENT_IDLE.get(conf)))
        .checksum(ZerohopConf.CHECKSUM.get(conf))
        .paths(ZerohopConf.PATHS.get(conf))
        .connectLimit(Duration.ofMillis(ZerohopConf.CONNECT_TIMEOUT.get(conf)))
        .requestLimit(Duration.ofMillis(ZerohopConf.REQUEST_TIMEOUT.get(conf)))
        .stagedLimit(stagedLimit(conf))
        .deviceLimit(Duration.ofMillis(ZerohopConf.DEVICE_TIMEOUT.get(conf)))
        .asyncCommit(ZerohopConf.ASYNC_COMMIT.get(conf))
        .windowBlocks(ZerohopConf.WINDOW_BLOCKS.get(conf))
        .windowBytes(ZerohopConf.WINDOW_SIZE.get(conf))
        .receiveBufferBytes(ZerohopConf.RECEIVE_BUFFER_SIZE.get(conf))
        .spillStart(ZerohopConf.SPILL_START.get(conf))
        .spillIdle(Duration.ofMillis(ZerohopConf.SPILL_IDLE.get(conf)))
        .nodeId(ZerohopConf.NODE_ID.get(conf).trim())
        .ucxIdle(Duration.ofMillis(ZerohopConf.UCX_IDLE.get(conf)))
        .clock(Clock.system());
  }

  /**
   * Longer than Spark's own client takes to give a block up: all its tries and the waits between.
   */
  static Duration stagedLimit(final SparkConf conf) {
    final long network = conf.getTimeAsSeconds("spark.network.timeout", "120s");
    final long pause = conf.getTimeAsSeconds("spark.shuffle.io.retryWait", "5s");
    final int tries = 1 + conf.getInt("spark.shuffle.io.maxRetries", 3);
    return Duration.ofSeconds(tries * (network + pause));
  }
}
