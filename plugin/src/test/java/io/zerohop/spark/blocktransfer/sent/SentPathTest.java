package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.contract.RemotePathContract;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** Blocks come from what is taken to be another node, sent over Spark's connections. */
class SentPathTest extends RemotePathContract {
  /** Logs a stack at both ends for each connection that ends. */
  private static final String NETWORK = "org.apache.spark.network";

  private static Leaks beforeAll;

  private final Map<String, BlockPort> ports = new ConcurrentHashMap<>();

  @BeforeAll
  static void quiet() {
    Configurator.setLevel(NETWORK, Level.OFF);
    beforeAll = new Leaks();
  }

  @AfterAll
  static void loud() {
    Configurator.setLevel(NETWORK, Level.INFO);
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
  protected Path path() {
    return Path.SENT;
  }

  @Override
  protected NodeConfig.Builder configure(final NodeConfig.Builder config, final String executor) {
    final BlockPort port = new BlockPort(executor, settings());
    ports.put(executor, port);
    return config
        .nodeId("node-" + executor)
        .requestLimit(Duration.ofSeconds(4))
        .connectLimit(Duration.ofSeconds(2))
        .carrier(port.carrier(this::find));
  }

  private BlockManagerId find(final String executorId) {
    final BlockPort port = ports.get(executorId);
    return port == null ? null : port.address();
  }

  @Override
  protected Object address() {
    return find("owner");
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
