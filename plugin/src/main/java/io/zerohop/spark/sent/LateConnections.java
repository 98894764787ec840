package io.zerohop.spark.sent;

import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import io.zerohop.spark.compat.SparkLinks;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.NoOpRpcHandler;
import org.apache.spark.network.util.TransportConf;

/**
 * Closes connections that stand when nobody waits for them any more: who gives up earlier than
 * Spark leaves one behind that Spark neither returns nor closes, and that neither end would ever
 * close. Immutable.
 */
final class LateConnections extends NoOpRpcHandler {
  private static final AttributeKey<Boolean> CLAIMED =
      AttributeKey.valueOf(LateConnections.class, "claimed");

  /** For the thread that waits for a connection, until it has claimed it. */
  private static final Duration GRACE = Duration.ofSeconds(1);

  private static final Duration LONGEST = Duration.ofDays(1);

  private final Duration limit;

  /**
   * @param limit how long others wait for a connection, at most
   */
  LateConnections(final Duration limit) {
    this.limit = shorter(limit, LONGEST);
  }

  private static Duration shorter(final Duration one, final Duration other) {
    return one.compareTo(other) < 0 ? one : other;
  }

  /**
   * Spark's settings of a module, but Spark gives up a connection soon after the caller: in the
   * next second, since it counts whole ones. Those of idle connections stay as they are.
   *
   * @param limit how long callers wait
   */
  static TransportConf givingUp(
      final String module,
      final SparkConf conf,
      final SecurityManager security,
      final Duration limit) {
    final TransportConf before = new TransportConf(module, SparkLinks.newRpcConfig(security, conf));
    final int millis = before.connectionCreationTimeoutMs(); // Without a limit if it is 0.
    final long seconds = shorter(limit, LONGEST).toSeconds() + 1;
    if (millis > 0 && millis <= TimeUnit.SECONDS.toMillis(seconds)) {
      return before;
    }
    final SparkConf own = conf.clone();
    own.set("spark." + module + ".io.connectionCreationTimeout", seconds + "s");
    return new TransportConf(module, SparkLinks.newRpcConfig(security, own));
  }

  /** Somebody has taken a connection, and closes it. */
  static void claim(final TransportClient client) {
    client.getChannel().attr(CLAIMED).set(true);
  }

  @Override
  public void channelActive(final TransportClient client) {
    final Channel channel = client.getChannel();
    channel
        .eventLoop()
        .schedule(
            () -> closeUnclaimed(channel), limit.plus(GRACE).toMillis(), TimeUnit.MILLISECONDS);
  }

  private static void closeUnclaimed(final Channel channel) {
    if (channel.attr(CLAIMED).get() == null) {
      channel.close();
    }
  }
}
