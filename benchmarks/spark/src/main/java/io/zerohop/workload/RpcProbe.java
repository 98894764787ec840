package io.zerohop.workload;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Measures how long Spark's own messages take: each executor asks the driver again and again, over
 * the connection that heartbeats and requests for map outputs go by. To be named in {@code
 * spark.plugins}. Latencies are counted in the driver's process.
 */
public final class RpcProbe implements SparkPlugin {
  private static final long PAUSE_NANOS = 20_000_000;
  private static final int REPORT = 25;
  private static final int MOST = 1 << 20;

  /** How long executors may keep what they have measured. */
  static final long REPORT_MS = 2 * REPORT * PAUSE_NANOS / 1_000_000;

  private static final long[] SAMPLES = new long[MOST];
  private static int count;

  /** Microseconds of one request and its answer, of all executors, sorted. */
  private record Latencies(long[] micros) implements Serializable {
    private static final long serialVersionUID = 1L;
  }

  /** What is asked; the answer is the same. */
  private static final String PING = "ping";

  /** Forgets what was measured. */
  static synchronized void reset() {
    count = 0;
  }

  private static synchronized void add(final long[] micros) {
    for (final long each : micros) {
      if (count < MOST) {
        SAMPLES[count++] = each;
      }
    }
  }

  /**
   * What was measured since.
   *
   * @return requests, and the 50th and 99th percentile and the most in microseconds; all 0 if there
   *     is no probe
   */
  static synchronized Map<String, Long> summary() {
    final long[] sorted = Arrays.copyOf(SAMPLES, count);
    Arrays.sort(sorted);
    return Map.of(
        "requests", (long) count,
        "p50_us", at(sorted, 0.5),
        "p99_us", at(sorted, 0.99),
        "most_us", at(sorted, 1));
  }

  private static long at(final long[] sorted, final double share) {
    return sorted.length == 0
        ? 0
        : sorted[(int) Math.min(sorted.length - 1L, (long) (share * sorted.length))];
  }

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(final SparkContext context, final PluginContext plugin) {
        return Map.of();
      }

      @Override
      public Object receive(final Object message) {
        if (message instanceof Latencies latencies) {
          add(latencies.micros());
          return null; // Nobody waits for an answer to it.
        }
        return PING;
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private volatile boolean ended;

      @Override
      public void init(final PluginContext context, final Map<String, String> extra) {
        final Thread thread = new Thread(() -> measure(context), "rpc-probe");
        thread.setDaemon(true);
        thread.start();
      }

      private void measure(final PluginContext context) {
        final long[] micros = new long[REPORT];
        int measured = 0;
        while (!ended) {
          final long begin = System.nanoTime();
          try {
            context.ask(PING);
            micros[measured++] = (System.nanoTime() - begin) / 1000;
            if (measured == REPORT) {
              context.send(new Latencies(micros.clone()));
              measured = 0;
            }
          } catch (final Exception e) { // Also what is thrown undeclared: the driver has ended.
            return;
          }
          LockSupport.parkNanos(PAUSE_NANOS);
        }
      }

      @Override
      public void shutdown() {
        ended = true;
      }
    };
  }
}
