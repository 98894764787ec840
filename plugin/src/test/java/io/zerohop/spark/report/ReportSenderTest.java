package io.zerohop.spark.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.Figure.Figures;
import io.zerohop.spark.report.ReportCounters.ReaderCounts;
import io.zerohop.spark.report.ReportSender.SendRate;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.ReportJson;
import java.net.URL;
import java.net.URLClassLoader;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ReportSenderTest {
  private static final Duration NEVER = Duration.ofDays(1);
  private static final Advice ADVICE =
      new Advice("memlock", "warn", "", "it is low", "", "raise it");
  private static final Duration OFTEN = Duration.ofMillis(5);

  private final ReportCounters counters = new ReportCounters();
  private final BlockingQueue<String> sent = new LinkedBlockingQueue<>();
  private final AtomicLong used = new AtomicLong();
  private final AtomicInteger asked = new AtomicInteger();
  private volatile ClassLoader doctors;
  private final Housekeeping housekeeping = new Housekeeping(Clock.system());
  private ReportSender sender;

  @AfterEach
  void stop() {
    if (sender != null) {
      sender.close();
    }
    housekeeping.close();
  }

  @Test
  void theEndOfTheLastTaskIsReportedAtOnce() throws Exception {
    start(NEVER);
    sender.taskBegins();
    sender.taskBegins();
    final ReaderCounts reader = new ReaderCounts(counters, 1);
    reader.fetched("2", Link.PEER, 1, 77);
    reader.end();
    sender.taskEnded();
    assertThat(sent).isEmpty();
    sender.taskEnded();
    assertThat(take().flows().get(0).bytes()).isEqualTo(77);
  }

  @Test
  void memoryThatChangesIsReportedInTheNextIntervalAndOnce() throws Exception {
    start(OFTEN);
    ShuffleReport first = take();
    while (first.advice().isEmpty()) { // What the doctor says comes with one of the first.
      assertThat(first.memory().figures().get(Figure.HOST_USED)).isZero();
      first = take();
    }
    used.set(4096);
    assertThat(take().memory().figures().get(Figure.HOST_USED)).isEqualTo(4096);
    assertThat(sent.poll(50, TimeUnit.MILLISECONDS)).isNull();
  }

  @Test
  void whatTheDoctorSaysIsReportedOnce() throws Exception {
    start(OFTEN);
    while (take().advice().isEmpty()) {
      // The memory's first report may be earlier.
    }
    used.set(1);
    assertThat(take().advice()).isEmpty();
    assertThat(asked.get()).isEqualTo(1);
  }

  /** It looks for what tasks would find. */
  @Test
  void theDoctorHasTheClassLoaderOfWhoBegins() throws Exception {
    final Thread here = Thread.currentThread();
    final ClassLoader before = here.getContextClassLoader();
    try (URLClassLoader tasks = new URLClassLoader(new URL[0], before)) {
      here.setContextClassLoader(tasks);
      start(OFTEN);
      while (take().advice().isEmpty()) {
        // The memory's first report may be earlier.
      }
      assertThat(doctors).isSameAs(tasks);
    } finally {
      here.setContextClassLoader(before);
    }
  }

  @Test
  void aDoctorThatFailsEndsNoReports() throws Exception {
    asked.set(1);
    start(OFTEN);
    assertThat(take().advice()).isEmpty();
  }

  @Test
  void aFailureEndsNoReports() throws Exception {
    used.set(-1);
    start(OFTEN);
    assertThat(sent.poll(50, TimeUnit.MILLISECONDS)).isNull();
    used.set(1);
    assertThat(take().memory().figures().get(Figure.HOST_USED)).isEqualTo(1);
  }

  @Test
  void aLongReportDelaysTheNextOne() {
    final SendRate rate = new SendRate(2, Duration.ofNanos(100), 7);
    assertThat(rate.isDue(7)).isTrue();
    rate.sent(SendRate.INTERVAL_CHARS - 1, 1_000);
    assertThat(rate.isDue(1_000)).isTrue();
    rate.sent(3 * SendRate.INTERVAL_CHARS, 1_000);
    assertThat(rate.isDue(1_299)).isFalse();
    assertThat(rate.isDue(1_300)).isTrue();
    // Nor is one sent because the executor has fallen idle.
    assertThat(rate.take(1_100)).isFalse();
    assertThat(rate.take(1_600)).isTrue();
  }

  @Test
  void endsOfTasksAreReportedInBurstsOnly() {
    final long second = 1_000_000_000L;
    final SendRate rate = new SendRate(2, Duration.ofSeconds(5), 0);
    assertThat(rate.take(0)).isTrue();
    assertThat(rate.take(0)).isTrue();
    assertThat(rate.take(second)).isFalse();
    assertThat(rate.take(6 * second)).isTrue();
    assertThat(rate.take(6 * second)).isFalse();
    assertThat(rate.take(100 * second)).isTrue();
  }

  private void start(final Duration interval) {
    sender =
        new ReportSender(
            "1",
            "n",
            counters,
            this::memory,
            this::advice,
            sent::add,
            interval,
            housekeeping,
            Clock.system());
  }

  private List<Advice> advice() {
    doctors = Thread.currentThread().getContextClassLoader();
    if (asked.incrementAndGet() > 1) {
      throw new LinkageError("asked again");
    }
    return List.of(ADVICE);
  }

  private Memory memory() {
    if (used.get() < 0) {
      throw new IllegalStateException("not now");
    }
    return new Memory(Figures.of(figure -> figure == Figure.HOST_USED ? used.get() : 0), null);
  }

  private ShuffleReport take() throws InterruptedException {
    return ReportJson.read(sent.take(), ShuffleReport.class);
  }
}
