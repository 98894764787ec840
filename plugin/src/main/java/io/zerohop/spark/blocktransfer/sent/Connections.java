package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.control.ControlConnector;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.client.TransportClientBootstrap;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.crypto.AuthClientBootstrap;
import org.apache.spark.network.server.NoOpRpcHandler;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.storage.StorageLevel;
import scala.Tuple2;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Connections of our own to block ports of executors, with the proof and the encryption that
 * Spark's own have. Thread safe; owns them, and some threads of Netty's.
 */
final class Connections implements AutoCloseable {
  /** Settings of Spark's own block transfer hold for these, too. */
  private static final String MODULE = "shuffle";

  private static final String THREADS = "spark.shuffle.io.clientThreads";
  private static final int MOST_THREADS = 4;
  private static final Duration CLOSE_LIMIT = Duration.ofSeconds(5);

  private final TransportContext context;
  private final TransportClientFactory factory;
  private final ControlConnector connector;
  private final byte[] metadata;
  private final int threads;
  private final Set<Connection> open = ConcurrentHashMap.newKeySet();

  /** Uploads that have not ended: Netty says that a connection is closed before it fails these. */
  private final AtomicInteger underWay = new AtomicInteger();

  private volatile boolean closed;

  Connections(final SparkConf conf, final SecurityManager security) {
    final SparkConf own = conf.clone();
    final int half = Runtime.getRuntime().availableProcessors() / 2;
    own.setIfMissing(THREADS, String.valueOf(Math.max(1, Math.min(MOST_THREADS, half))));
    final TransportConf transport =
        new TransportConf(MODULE, SparkLinks.newRpcConfig(security, own));
    threads = Math.max(1, Math.min(MOST_THREADS, transport.clientThreads()));
    final List<TransportClientBootstrap> bootstraps =
        security.isAuthenticationEnabled()
            ? List.of(new AuthClientBootstrap(transport, conf.getAppId(), security))
            : List.of();
    metadata = metadata(conf);
    context = new TransportContext(transport, new NoOpRpcHandler(), false, true);
    factory = context.createClientFactory(bootstraps);
    connector = new ControlConnector(factory);
  }

  /** What Spark asks of each upload, and nobody looks at: as of what is only on disk. */
  private static byte[] metadata(final SparkConf conf) {
    final ClassTag<Object> any = ClassTag$.MODULE$.Any();
    final ByteBuffer written =
        new JavaSerializer(conf)
            .newInstance()
            .serialize(
                new Tuple2<>(StorageLevel.DISK_ONLY(), any), ClassTag$.MODULE$.apply(Tuple2.class));
    final byte[] bytes = new byte[written.remaining()];
    written.get(bytes);
    return bytes;
  }

  /** Connections to one executor that threads of Netty's can serve at a time; 1 to 4. */
  int threads() {
    return threads;
  }

  /**
   * A connection of its own; the caller's to close.
   *
   * @throws ExchangeException as {@link io.zerohop.shuffle.transport.ControlChannel#connect} says
   */
  Connection connect(final String host, final int port, final Duration limit) {
    if (closed) {
      throw new ExchangeException(
          ExchangeException.Reason.CLOSED, "this executor is shutting down");
    }
    final Connection made =
        new Connection(connector.connect(host, port, limit), metadata, underWay);
    open.add(made);
    made.onClosed(() -> open.remove(made));
    if (closed) {
      made.close(); // Who closes may have passed it.
    }
    return made;
  }

  /**
   * Closes all and ends the threads. Waits for a limited time. Idempotent.
   *
   * @return whether nothing is being sent any more
   */
  boolean end() {
    closed = true;
    connector.close();
    open.forEach(Connection::close);
    final boolean ended =
        Deadline.in(CLOSE_LIMIT)
            .await(
                () -> open.isEmpty() && underWay.get() == 0,
                millis -> Clock.system().sleep(Duration.ofMillis(Math.min(10, millis))));
    factory.close();
    context.close();
    return ended;
  }

  @Override
  public void close() {
    end();
  }
}
