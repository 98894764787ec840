package io.zerohop.shuffle.keeper;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.transport.samenode.KeptExecutor;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Reports about executors that have ended, to drivers that answer, hang or are not there. */
@Timeout(120)
class DriverReportsTest {
  private static final Duration LIFE = Duration.ofHours(1);
  private static final Duration LONGER = Keeper.Driver.PATIENCE.plusSeconds(1);
  private static final Duration ROUND = Duration.ofSeconds(2);

  @TempDir private Path temp;
  private final Leaks leaks = new Leaks();
  private final HostDevice host = new HostDevice();
  private final TestClock clock = TestClock.standing();
  private final List<KeptExecutor> executors = new ArrayList<>();
  private final List<String> asked = new ArrayList<>();
  private SocketFolder sockets;
  private LongSupplier memory = () -> Long.MAX_VALUE;
  private boolean isGpuFreed;
  private Keeper.Driver driver = (executor, outputs) -> Set.of(1);
  private DriverReports reports;

  @BeforeEach
  void start() {
    sockets = ShuffleNode.socketFolder(temp.resolve("s"), "app-test", TestNodes.SECRET);
    reports =
        new DriverReports(
            this,
            executors,
            LIFE,
            (executor, outputs) -> {
              asked.add(executor);
              return driver.report(executor, outputs);
            },
            () -> memory.getAsLong(),
            () -> false,
            left -> isGpuFreed,
            clock);
  }

  @AfterEach
  void noLeaks() {
    executors.forEach(KeptExecutor::close);
    sockets.close();
    host.close();
    leaks.check();
  }

  private KeptExecutor ended(final String id) {
    return ended(ShuffleNode.start(TestNodes.config(temp.resolve("s"), id).set("keeper", true)));
  }

  private KeptExecutor endedOnGpu(final String id) {
    return ended(
        ShuffleNode.start(
            TestNodes.linked(temp.resolve("s"), id, 0, 4 << 20).set("keeper", true),
            new DeviceOnlyGpu()));
  }

  /** An executor that has ended, and has left shuffle 1. */
  private KeptExecutor ended(final ShuffleNode owner) {
    TestBlocks.put(owner, 1, 0, 2, 60, 500);
    TestNodes.eventually("it is connected", () -> connect(owner.location().socket()));
    final KeptExecutor kept = executors.get(executors.size() - 1);
    final AtomicInteger looks = new AtomicInteger();
    TestNodes.eventually(
        "all is held",
        () -> {
          if (looks.incrementAndGet() % 200 == 0) {
            clock.advance(ROUND); // What a busy machine did not answer is asked for again.
          }
          return kept.round(Long.MAX_VALUE) == 0 && kept.heldBytes() > 0;
        });
    owner.close();
    TestNodes.eventually(
        "it is taken over",
        () -> {
          kept.round(0);
          return kept.left() != null;
        });
    return kept;
  }

  /** Returns whether it answered in time, which on a busy machine it may not. */
  private boolean connect(final String socket) {
    try {
      executors.add(
          KeptExecutor.connect(sockets, socket, TestNodes.SECRET, host, Location.KEEPER, clock));
      return true;
    } catch (final ZerohopException e) {
      return false;
    }
  }

  private static Set<Integer> nobody() throws IOException {
    throw new IOException("nobody answers");
  }

  @Test
  void oneOfWhichTheDriverDoesNotHearLeavesTheOthersTheirTurn() {
    ended("1");
    ended("2");
    driver = (executor, outputs) -> executor.equals("1") ? nobody() : Set.of(1);
    reports.report();
    assertThat(asked).containsExactly("1", "2");
    assertThat(reports.silence()).as("it has answered once").isZero();
  }

  @Test
  void oneOfWhichTheDriverNeverHearsGetsTooOldAsOthers() {
    final KeptExecutor never = ended("1");
    final KeptExecutor other = ended("2");
    driver = (executor, outputs) -> executor.equals("1") ? nobody() : Set.of(1);
    clock.advance(LIFE.minusSeconds(1));
    reports.report();
    clock.advance(ROUND);
    limit();
    assertThat(never.isClosed()).isTrue();
    assertThat(other.isClosed()).isFalse();
  }

  @Test
  void aDriverThatHangsIsAskedForOneAfterTheOther() {
    ended("1");
    ended("2");
    ended("3");
    driver =
        (executor, outputs) -> {
          clock.advance(Duration.ofSeconds(120));
          return nobody();
        };
    reports.report();
    assertThat(asked).containsExactly("1");
    reports.report();
    reports.report();
    reports.report();
    assertThat(asked).containsExactly("1", "2", "3", "1");
    assertThat(reports.silence()).isEqualTo(4);
  }

  @Test
  void aDriverThatIsNotThereIsMissedOnceInAReport() {
    final KeptExecutor one = ended("1");
    final KeptExecutor two = ended("2");
    driver = (executor, outputs) -> nobody();
    reports.report();
    assertThat(asked).containsExactly("1", "2");
    assertThat(reports.silence()).isOne();
    reports.report();
    assertThat(reports.silence()).isEqualTo(2);
    executors.removeAll(List.of(one, two));
    one.close();
    two.close();
    reports.report();
    assertThat(reports.silence()).as("it was not asked for anything").isZero();
  }

  @Test
  void whatIsTooOldGoesAlsoWhileTheDriverHangs() throws Exception {
    final KeptExecutor kept = ended("1");
    final CountDownLatch hangs = new CountDownLatch(1);
    final CountDownLatch goesOn = new CountDownLatch(1);
    driver =
        (executor, outputs) -> {
          hangs.countDown();
          goesOn.await();
          return Set.of(1);
        };
    final CompletableFuture<Void> report = CompletableFuture.runAsync(reports::report);
    assertThat(hangs.await(60, TimeUnit.SECONDS)).isTrue();
    clock.advance(LONGER);
    limit();
    assertThat(kept.isClosed()).as("it is not old").isFalse();
    clock.advance(LIFE);
    limit();
    assertThat(kept.isClosed()).isTrue();
    goesOn.countDown();
    report.get(60, TimeUnit.SECONDS);
  }

  private synchronized void limit() {
    reports.limitUnheard();
  }

  @Test
  void aDriverThatAnswersHearsOfWhatIsTooOldFirst() {
    final KeptExecutor kept = ended("1");
    clock.advance(LIFE.minusSeconds(1));
    reports.report();
    clock.advance(ROUND);
    limit();
    assertThat(kept.isClosed()).isFalse();
    reports.report();
    assertThat(kept.isClosed()).isTrue();
  }

  @Test
  void whereMemoryIsShortWhatEndedFirstGoesAlsoWithoutAnAnswer() {
    final KeptExecutor one = ended("1");
    clock.advance(ROUND);
    final KeptExecutor two = ended("2");
    driver = (executor, outputs) -> nobody();
    memory = () -> 0;
    reports.report();
    clock.advance(Keeper.Driver.PATIENCE.minus(ROUND.multipliedBy(3)));
    limit();
    assertThat(one.isClosed()).as("the driver may only pause").isFalse();
    clock.advance(LONGER);
    limit();
    limit();
    assertThat(one.isClosed()).isTrue();
    assertThat(two.isClosed()).as("memory that goes counts a moment later").isFalse();
    assertThat(reports.removedOutputs()).isOne();
    clock.advance(ROUND);
    limit();
    assertThat(two.isClosed()).isTrue();
  }

  @Test
  void ofOneGpuTheLastThatEndedStaysAlsoWithoutAnAnswer() {
    final KeptExecutor one = endedOnGpu("1");
    clock.advance(ROUND);
    final KeptExecutor two = endedOnGpu("2");
    assertThat(one.leftGpu()).isNotEmpty().isEqualTo(two.leftGpu());
    driver = (executor, outputs) -> nobody();
    reports.report();
    clock.advance(LONGER);
    limit();
    assertThat(one.isClosed()).isTrue();
    clock.advance(ROUND);
    limit();
    assertThat(two.isClosed()).isFalse();
  }

  /** Statuses of tasks that ended just before their executor reach the driver after its report. */
  @Test
  void whatTheDriverMayNotKnowYetStays() {
    final KeptExecutor kept = ended("1");
    driver = (executor, outputs) -> Set.of();
    reports.report();
    clock.advance(ROUND);
    reports.report();
    clock.advance(ROUND);
    reports.report();
    assertThat(kept.isClosed()).isFalse();
    clock.advance(LONGER);
    reports.report();
    assertThat(kept.isClosed()).as("by one answer").isFalse();
    driver = (executor, outputs) -> Set.of(1);
    reports.report();
    driver = (executor, outputs) -> Set.of();
    reports.report();
    assertThat(kept.isClosed()).isFalse();
    reports.report();
    assertThat(kept.isClosed()).isTrue();
  }

  @Test
  void whatWasToldIsNotToldAgain() {
    ended("1");
    final Set<Map<Integer, Set<Long>>> told = new HashSet<>();
    driver =
        (executor, outputs) -> {
          told.add(outputs);
          return Set.of(1);
        };
    reports.report();
    assertThat(told).containsExactly(Map.of(1, Set.of(0L)));
    told.clear();
    reports.report();
    assertThat(told).hasSize(1).containsOnlyNulls();
  }
}
