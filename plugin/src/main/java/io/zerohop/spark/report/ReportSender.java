package io.zerohop.spark.report;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.ReportJson;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.util.RpcUtils;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends an executor's reports to the driver: in each interval with changes, and when the last task
 * ends, so that the end of a short job is not lost. A long report delays the next one, so that
 * large clusters do not fill the event log. A report that cannot be sent is lost; none makes a task
 * wait or fail. Thread safe.
 */
public final class ReportSender implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ReportSender.class);
  private static final int BURST = 20;

  private final ReportCounters counters;
  private final Supplier<Memory> memory;
  private final Consumer<String> driver;
  private final String executorId;
  private final String node;
  private final AtomicInteger running = new AtomicInteger();
  private final Clock clock;
  private final Runnable atEndOfTasks = this::sendIfAny;

  /** Absent if there is no thread for it. */
  private final Housekeeping.@Nullable Chore sending;

  /** Never used by two threads at once, as is the one below. */
  private final SendRate rate;

  private @Nullable Memory told;

  /**
   * Begins to report.
   *
   * @param doctor looks at this executor, once and in the background; ends in a limited time
   * @param driver takes a report as JSON; may fail, and waits a limited time
   * @param interval longest time between two reports
   */
  public ReportSender(
      final String executorId,
      final String node,
      final ReportCounters counters,
      final Supplier<Memory> memory,
      final Supplier<List<Advice>> doctor,
      final Consumer<String> driver,
      final Duration interval,
      final Housekeeping housekeeping,
      final Clock clock) {
    this.executorId = executorId;
    this.node = node;
    this.counters = counters;
    this.memory = memory;
    this.driver = driver;
    this.clock = clock;
    this.rate = new SendRate(BURST, interval, clock.nanos());
    Housekeeping.Chore chore = null;
    try {
      chore = housekeeping.everyLong("report", interval, this::isDue, this::send);
      // Beside the reports, which are not to wait for it.
      Threads.daemonOfCaller(() -> consult(doctor), "zerohop-doctor").start();
    } catch (final ZerohopException e) {
      SparkCode.NOT_IN_TAB
          .says("this executor does not report to the tab GPU Shuffle")
          .at("executor " + executorId)
          .because(e)
          .warn(LOG, e);
    }
    sending = chore;
  }

  /** A task begins that will be counted. */
  public void taskBegins() {
    running.incrementAndGet();
  }

  /** It has ended, and counts nothing any more. */
  public void taskEnded() {
    if (running.decrementAndGet() > 0 || counters.isEmpty()) {
      return;
    }
    if (sending != null) {
      sending.soon(atEndOfTasks);
    }
  }

  private void sendIfAny() {
    if (rate.take(clock.nanos())) {
      send();
    }
  }

  private boolean isDue() {
    return rate.isDue(clock.nanos()) && (!counters.isEmpty() || memoryHasChanged());
  }

  private boolean memoryHasChanged() {
    try {
      return !memory.get().equals(told);
    } catch (final RuntimeException e) {
      LOG.debug("the executor's memory is not reported in this interval", e);
      return false;
    }
  }

  private void send() {
    try {
      final Memory now = memory.get();
      if (!counters.isEmpty() || !now.equals(told)) {
        final String report = ReportJson.write(counters.drain(executorId, node, now));
        told = now;
        rate.sent(report.length(), clock.nanos());
        driver.accept(report);
      }
    } catch (final Exception e) {
      // Scala throws what it does not declare. A failure must not end the reports.
      LOG.debug("a report for the tab GPU Shuffle was not sent", e);
    }
  }

  private void consult(final Supplier<List<Advice>> doctor) {
    try {
      doctor.get().forEach(counters::advise);
    } catch (final RuntimeException | LinkageError e) {
      LOG.debug("the tab GPU Shuffle has nothing of the doctor for this executor", e);
    }
  }

  /** Reports no more; what is being sent is not waited for. Idempotent. */
  @Override
  public void close() {
    if (sending != null) {
      sending.cancel();
    }
  }

  /**
   * The rate at which an executor may report: in every interval, but after a long report only so
   * many intervals later as it was long. When it falls idle it may report at once, in bursts, but
   * no more often in the long run. All times are readings of a {@link Clock}. Not thread safe.
   */
  static final class SendRate {
    /** Characters that an executor may send in an interval: they all end up in the event log. */
    static final int INTERVAL_CHARS = 4096;

    private final double most;
    private final long nanos;
    private double left;
    private long last;
    private long due;

    /**
     * @param most reports in a burst
     * @param interval between reports; earns another one at once
     */
    SendRate(final int most, final Duration interval, final long now) {
      this.most = most;
      this.nanos = interval.toNanos();
      this.left = most;
      this.last = now;
      this.due = now;
    }

    /** Takes a report at once, if there is one left. */
    boolean take(final long now) {
      earn(now);
      if (left < 1) {
        return false;
      }
      left--;
      return true;
    }

    private void earn(final long now) {
      left = Math.min(most, left + (double) (now - last) / nanos);
      last = now;
    }

    /** Whether the report of an interval may be sent. */
    boolean isDue(final long now) {
      return now - due >= 0;
    }

    void sent(final int chars, final long now) {
      earn(now);
      due = now + nanos * (chars / INTERVAL_CHARS);
      left -= (double) chars / INTERVAL_CHARS; // Below 0 it takes as long until one is left again.
    }
  }

  /**
   * Sends reports to the driver over Spark's own RPC. Used by one thread. Where the driver does not
   * take reports, each attempt waits as long as Spark's RPC does and fails.
   */
  public static final class DriverReports implements Consumer<String> {
    public static final String ENDPOINT = "zerohop-reports";

    private final SparkEnv env;
    private final SparkConf conf;
    private @Nullable RpcEndpointRef driver;

    public DriverReports(final SparkEnv env, final SparkConf conf) {
      this.env = env;
      this.conf = conf;
    }

    @Override
    public void accept(final String report) {
      if (driver == null) {
        driver = RpcUtils.makeDriverRef(ENDPOINT, conf, env.rpcEnv());
      }
      driver.send(report);
    }
  }
}
