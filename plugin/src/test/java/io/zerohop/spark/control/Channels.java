package io.zerohop.spark.control;

import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.control.OpenChannels.ControlLimits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import scala.Option;

/** Makes control channels for one test and closes them after it. */
final class Channels implements AutoCloseable {
  static final String HOST = "127.0.0.1";
  static final Duration LIMIT = Duration.ofSeconds(20);
  private static final Duration WAIT = Duration.ofSeconds(20);

  private final List<SparkControlChannel> open = new ArrayList<>();

  static byte[] secret(final int seed) {
    final byte[] secret = new byte[32];
    Arrays.fill(secret, (byte) seed);
    return secret;
  }

  static SparkConf conf() {
    return new SparkConf(false);
  }

  SparkControlChannel open(final AskedService service) {
    return open(conf(), 1, service, LIMIT, ControlLimits.DEFAULT);
  }

  SparkControlChannel open(
      final SparkConf conf,
      final int seed,
      final AskedService service,
      final Duration answerLimit,
      final ControlLimits limits) {
    final SecurityManager security = new SecurityManager(conf, Option.empty(), null);
    final SparkControlChannel channel =
        new SparkControlChannel(
            conf,
            ZerohopConf.of(conf).with("device.timeout", answerLimit),
            security,
            HOST,
            secret(seed),
            service,
            limits);
    open.add(channel);
    return channel;
  }

  /** Waits for what another thread does soon; the test's own limit is the last one. */
  static void await(final String what, final BooleanSupplier condition)
      throws InterruptedException {
    final long start = System.nanoTime();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - start > WAIT.toNanos()) {
        throw new AssertionError("still waiting until " + what);
      }
      Thread.sleep(2);
    }
  }

  @Override
  public void close() {
    open.forEach(SparkControlChannel::close);
  }
}
