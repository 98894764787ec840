package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ZerohopException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads that come with work and go without it, and a system that has none left. */
@Timeout(60)
class ElasticThreadsTest {
  private final Semaphore done = new Semaphore(0);
  private final Semaphore mayEnd = new Semaphore(0);
  private final Queue<Runnable> spare = new ArrayDeque<>();
  private final AtomicInteger started = new AtomicInteger();
  private volatile boolean exhausted;

  private final class Limited extends Thread {
    Limited(final Runnable work) {
      super(work, "test-elastic");
      setDaemon(true);
    }

    @Override
    public synchronized void start() {
      if (exhausted) {
        throw new ZerohopException(ZerohopException.Category.FALLBACK, "no thread left");
      }
      started.incrementAndGet();
      super.start();
    }
  }

  private ElasticThreads threads(final int most, final Duration idle) {
    return new ElasticThreads("elastic", most, spare::add, Limited::new, idle);
  }

  private static boolean isThere() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.getName().equals("test-elastic"));
  }

  private void workUntilTold() {
    mayEnd.acquireUninterruptibly();
    done.release();
  }

  @Test
  void theyComeWithWorkAndGoWithoutIt() throws InterruptedException {
    try (ElasticThreads threads = threads(2, Duration.ofMillis(1))) {
      assertThat(isThere()).isFalse();
      threads.execute(done::release);
      assertThat(done.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
      while (isThere()) {
        TimeUnit.MILLISECONDS.sleep(1);
      }
      threads.execute(done::release);
      assertThat(done.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
    }
  }

  @Test
  void anIdleOneTakesTheNextWork() throws InterruptedException {
    try (ElasticThreads threads = threads(100, Duration.ofSeconds(30))) {
      for (int i = 0; i < 100; i++) {
        threads.execute(done::release);
        assertThat(done.tryAcquire(30, TimeUnit.SECONDS)).isTrue();
        TimeUnit.MILLISECONDS.sleep(1);
      }
      // One may take its time to become idle.
      assertThat(started.get()).isLessThan(10);
    }
  }

  @Test
  void moreWorkThanThreadsWaitsItsTurn() throws InterruptedException {
    try (ElasticThreads threads = threads(2, Duration.ofSeconds(30))) {
      for (int i = 0; i < 5; i++) {
        threads.execute(this::workUntilTold);
      }
      assertThat(started.get()).isEqualTo(2);
      mayEnd.release(5);
      assertThat(done.tryAcquire(5, 30, TimeUnit.SECONDS)).isTrue();
    }
  }

  @Test
  void withoutAThreadTheSpareDoesIt() {
    exhausted = true;
    try (ElasticThreads threads = threads(2, Duration.ofSeconds(30))) {
      threads.execute(done::release);
      threads.execute(
          () -> {
            throw new ZerohopException(ZerohopException.Category.RETRY, "as a test wants it");
          });
      threads.execute(done::release);
      assertThat(done.availablePermits()).isZero();
      while (!spare.isEmpty()) {
        spare.poll().run();
      }
      assertThat(done.availablePermits()).isEqualTo(2);
      final long begin = System.nanoTime();
      assertThat(threads.end()).isTrue();
      assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(5));
    }
  }

  @Test
  void withoutAnotherThreadTheOneThatIsThereDoesIt() throws InterruptedException {
    try (ElasticThreads threads = threads(2, Duration.ofSeconds(30))) {
      threads.execute(this::workUntilTold);
      exhausted = true;
      threads.execute(this::workUntilTold);
      assertThat(spare).isEmpty();
      mayEnd.release(2);
      assertThat(done.tryAcquire(2, 30, TimeUnit.SECONDS)).isTrue();
    }
  }

  /** A pool replaces a thread whose work failed, and by then the system may have none left. */
  @Test
  void aThreadThatCannotBeReplacedLeavesItsWorkToTheSpare() throws InterruptedException {
    final Queue<Runnable> left = new ConcurrentLinkedQueue<>();
    try (ElasticThreads threads =
        new ElasticThreads("elastic", 1, left::add, Limited::new, Duration.ofSeconds(30))) {
      threads.execute(
          () -> {
            mayEnd.acquireUninterruptibly();
            throw new ZerohopException(ZerohopException.Category.RETRY, "as a test wants it");
          });
      threads.execute(done::release);
      exhausted = true;
      mayEnd.release();
      while (left.isEmpty()) {
        TimeUnit.MILLISECONDS.sleep(1);
      }
      left.poll().run();
      assertThat(done.availablePermits()).isEqualTo(1);
    }
  }
}
