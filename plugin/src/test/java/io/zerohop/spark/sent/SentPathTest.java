package io.zerohop.spark.sent;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.transport.contract.RemotePathContract;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.extension.ExtendWith;

/** Blocks come from what is taken to be another node, sent over Spark's connections. */
@ExtendWith(QuietNetwork.class)
class SentPathTest extends RemotePathContract {
  private static Leaks beforeAll;

  private final Map<String, BlockPort> ports = new ConcurrentHashMap<>();

  @BeforeAll
  static void countAll() {
    beforeAll = new Leaks();
  }

  @AfterAll
  static void checkAll() {
    beforeAll.check();
  }

  /** Netty takes two seconds to end its threads: looked at behind all tests. */
  @Override
  protected void checkLeaks(final Leaks before) {}

  /** What users set of Spark's connections. */
  protected Map<String, String> settings() {
    return Map.of();
  }

  @Override
  protected BlockPath path() {
    return BlockPath.SENT;
  }

  @Override
  protected ShuffleNode.Setup configure(final ShuffleNode.Setup config, final String executor) {
    final BlockPort port = new BlockPort(executor, settings());
    ports.put(executor, port);
    return config
        .set("node.id", "node-" + executor)
        .set("request.timeout", Duration.ofSeconds(4))
        .carrier(port.carrier(this::list));
  }

  private List<BlockManagerId> list() {
    return ports.values().stream().map(BlockPort::address).toList();
  }

  @Override
  protected Object address() {
    return ports.get("owner").address();
  }

  @Override
  protected void endService() {
    super.endService();
    ports.get("owner").close();
  }

  @Override
  protected void endFallback() {
    ports.values().forEach(BlockPort::close);
  }
}
