package io.zerohop.shuffle;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Lenders and borrowers in processes of their own, which are killed or stopped. */
class LoanProcessesTest {
  private static final int BATCHES = NodeProcess.BATCHES;
  private static final int MOST = NodeProcess.MOST;
  private static final int PARTITIONS = NodeProcess.PARTITIONS;
  private static final int MAPS = 120;

  /** How often the same maps are written until something is borrowed: half a minute at least. */
  private static final int MAX_ROUNDS = 250;

  private static final long SEGMENT = TestNodes.LINKED_SEGMENT;
  private static final long SMALL = 4 * SEGMENT;
  private static final long LARGE = 32 * SEGMENT;
  private static final int KILLS = 3;
  private static final long MOST_MILLIS = 150;

  /** A loan is waited for half a second. */
  private static final long GIVES_UP_MILLIS = 550;

  @TempDir private java.nio.file.Path temp;
  private final Leaks leaks = new Leaks();

  /** Neighbours are met every second. */
  private final TestClock clock = TestClock.running();

  private java.nio.file.Path base;
  private ShuffleNode node;

  private void start(final long pool) {
    base = temp.resolve("s");
    node =
        ShuffleNode.start(
            TestNodes.linked(base, "self", 0, pool).clock(clock), new DeviceOnlyGpu());
  }

  @AfterEach
  void noLeaks() {
    node.unregisterShuffle(1);
    TestNodes.assertNothingHeld(node);
    eventually("nothing is lent or borrowed", () -> lent() == 0 && borrowed() == 0);
    node.close();
    leaks.check();
    assertThat(base).doesNotExist();
  }

  private PoolStats.Loans loans() {
    return node.stats().device().loans();
  }

  private long lent() {
    return loans().lentBytes();
  }

  private long borrowed() {
    return loans().borrowedBytes();
  }

  private void awaitMeeting(final int others) {
    final TestClock.Flight flight = clock.fly();
    try {
      eventually("it knows them", () -> node.stats().peers().readable() == others);
    } finally {
      flight.close();
    }
    eventually("they know it", () -> Holdings.of(node).readingPeers() == others);
  }

  private void write() throws InterruptedException {
    for (int map = 0; map < MAPS; map++) {
      TestBlocks.put(node, 1, map, BATCHES, PARTITIONS, MOST);
      TimeUnit.MILLISECONDS.sleep(1);
    }
  }

  /** Writes until something is borrowed: a loan comes late on a busy machine. */
  private void borrow() throws InterruptedException {
    for (int round = 0; loans().borrowedUsedBytes() == 0; round++) {
      assertThat(round).as("times that all maps were written").isLessThan(MAX_ROUNDS);
      write();
    }
  }

  private void check() {
    TestNodes.fetchAndCheck(
        node,
        TestNodes.noStaging(),
        BATCHES,
        MOST,
        TestBlocks.source("self", node.location(), 1, 0, MAPS, BATCHES, PARTITIONS, MOST));
  }

  @Test
  void rowsOutliveALenderThatIsKilled() throws Exception {
    start(SMALL);
    // The reader has too little to lend any: what it lent would stay.
    try (NodeProcess reader = NodeProcess.linked(base, "reader", 2, SEGMENT);
        NodeProcess lender = NodeProcess.linked(base, "lender", 1, LARGE)) {
      awaitMeeting(2);
      borrow();
      lender.kill();
      check();
      assertThat(reader.ask("read", "self", node.location(), 1, MAPS)).isEqualTo("[PEER]");
      eventually("they move to host memory", () -> borrowed() == 0);
      check();
      assertThat(reader.ask("read", "self", node.location(), 1, MAPS)).isEqualTo("[PEER]");
      assertThat(Holdings.of(node).outputs()).isEqualTo(MAPS);
    }
  }

  /** At any time: before it asks, between the grant and the mapping, and while it writes. */
  @Test
  void aBorrowerThatIsKilledLeavesNothing() throws Exception {
    start(LARGE);
    for (int kill = 0; kill < KILLS; kill++) {
      try (NodeProcess borrower = NodeProcess.linked(base, "borrower-" + kill, 1, SMALL)) {
        awaitMeeting(1);
        final Thread killer = new Thread(() -> killSoon(borrower));
        killer.start();
        while (borrower.ask("write", kill + 1, MAPS) != null) {
          assertThat(borrower.ask("unregister", kill + 1)).isIn("ok", null);
        }
        killer.join();
      } catch (final IOException e) {
        // The second one once Java has seen its end.
        assertThat(e).as("it is dead").hasMessageMatching("(?i)broken pipe|stream closed");
      }
      eventually("its memory is free", () -> lent() == 0);
      assertThat(node.stats().device().reservedBytes()).isZero();
    }
  }

  private void killSoon(final NodeProcess borrower) {
    try {
      while (lent() == 0) {
        TimeUnit.MILLISECONDS.sleep(1);
      }
      TimeUnit.MILLISECONDS.sleep(ThreadLocalRandom.current().nextLong(MOST_MILLIS));
      borrower.kill();
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void aBorrowerThatIsStoppedHoldsNobodyUpAndReturnsWhenItGoesOn() throws Exception {
    start(LARGE);
    try (NodeProcess borrower = NodeProcess.linked(base, "borrower", 1, SMALL)) {
      awaitMeeting(1);
      assertThat(borrower.ask("write", 1, MAPS)).isEqualTo("ok");
      eventually("it borrows", () -> lent() > 0);
      borrower.pause();
      node.shrinkDevicePool(LARGE, EvictionScope.ALL, Duration.ofSeconds(1));
      assertThat(lent()).isPositive();
      assertThat(loans().recalledSegments()).isPositive();
      borrower.resume();
      eventually("it returns all", () -> lent() == 0);
      assertThat(borrower.ask("read", "borrower", borrower.location(), 1, MAPS))
          .isEqualTo("[LOCAL]");
      TestNodes.fetchAndCheck(node, TestNodes.noStaging(), BATCHES, MOST, borrower.source(1, MAPS));
      assertThat(borrower.ask("unregister", 1)).isEqualTo("ok");
    }
  }

  @Test
  void aLenderThatIsStoppedHoldsNobodyUp() throws Exception {
    start(SMALL);
    try (NodeProcess lender = NodeProcess.linked(base, "lender", 1, LARGE)) {
      awaitMeeting(1);
      lender.pause();
      write();
      TimeUnit.MILLISECONDS.sleep(GIVES_UP_MILLIS);
      assertThat(loans().borrowedUsedBytes()).isZero();
      lender.resume();
      eventually("what it lends late is returned", () -> number(lender, "returned") > 0);
      assertThat(lent(lender)).isZero();
      borrow();
      lender.pause();
      node.unregisterShuffle(1);
      eventually("what was borrowed is empty", () -> borrowed() == 0);
      lender.resume();
      eventually("all is returned", () -> lent(lender) == 0);
    }
  }

  private static long lent(final NodeProcess lender) {
    return number(lender, "lent");
  }

  private static long number(final NodeProcess process, final String what) {
    try {
      return Long.parseLong(process.ask(what));
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }
}
