package io.zerohop.shuffle.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.WaitException;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.LaneTable.LaneLayout;
import io.zerohop.shuffle.catalog.LaneTable.LanePool;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.pool.Reclaimer.LeaseBarrier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class LaneTest {
  private static final Duration SHORT = Duration.ofMillis(15);
  private static final int ROUNDS = 2_000;
  private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(60);

  private final HostDevice device = new HostDevice();
  private final RootSegment root = new RootSegment(device, 5);
  private final LaneTable table = root.lanes();
  private final UnsafeBuffer words = RootLayout.lanes(root.memory());
  private boolean connected = true;

  @AfterEach
  void noLeaks() {
    root.close();
    device.close();
  }

  private LanePool lanes(final int block) {
    return new LanePool(words, block, table.generation(block), () -> connected, Clock.system());
  }

  private static LanePool.Lease take(final LanePool lanes) {
    return lanes.take(SHORT, () -> false);
  }

  @Test
  void aSnapshotPassesWhenTheLeasesOpenThenHaveEnded() {
    final LanePool local = lanes(0);
    final LanePool peer = lanes(table.connect());
    assertThat(table.snapshot().passed()).isTrue();
    final LanePool.Lease first = take(local);
    final LeaseBarrier.Snapshot snapshot = table.snapshot();
    final LanePool.Lease second = take(peer);
    assertThat(snapshot.passed()).isFalse();
    first.close();
    first.close();
    assertThat(snapshot.passed()).as("a later lease does not matter").isTrue();
    assertThat(table.snapshot().passed()).isFalse();
    second.close();
    assertThat(table.snapshot().passed()).isTrue();
    assertThat(local.openLeases() + peer.openLeases()).isZero();
  }

  @Test
  void aLaneThatIsTakenAgainStillPasses() {
    final LanePool peer = lanes(table.connect());
    final List<LanePool.Lease> all = new ArrayList<>();
    for (int i = 0; i < LaneLayout.PEER_LANES; i++) {
      all.add(take(peer));
    }
    final LeaseBarrier.Snapshot snapshot = table.snapshot();
    all.forEach(LanePool.Lease::close);
    for (int i = 0; i < LaneLayout.PEER_LANES; i++) {
      all.set(i, take(peer));
    }
    assertThat(snapshot.passed()).isTrue();
    all.forEach(LanePool.Lease::close);
  }

  /** As one does who was dropped between his look and his store, and whose block is ours now. */
  @Test
  void aLaneInWhichSomebodyStoresLateIsLeftToHim() {
    final int block = table.connect();
    final LanePool peer = lanes(block);
    final int late = LaneLayout.offset(LaneLayout.firstLane(block) + 1) + LaneLayout.TAKEN;
    final int his = words.getInt(late) + 1;
    words.putInt(late, his);
    final List<LanePool.Lease> all = new ArrayList<>();
    for (int i = 0; i < LaneLayout.PEER_LANES - 1; i++) {
      all.add(take(peer));
    }
    assertThat(all).doesNotContainNull();
    assertThat(take(peer)).isNull();
    assertThat(words.getInt(late)).isEqualTo(his);
    assertThat(peer.openLeases()).isEqualTo(all.size());
    all.forEach(LanePool.Lease::close);
  }

  @Test
  void epochsMayWrapAround() {
    final int block = table.connect();
    for (int lane = 0; lane < LaneLayout.PEER_LANES; lane++) {
      final int at = LaneLayout.offset(LaneLayout.firstLane(block) + lane);
      words.putInt(at + LaneLayout.TAKEN, Integer.MAX_VALUE);
      words.putInt(at + LaneLayout.DONE, Integer.MAX_VALUE);
    }
    final LanePool peer = lanes(block);
    final LanePool.Lease lease = take(peer);
    final LeaseBarrier.Snapshot snapshot = table.snapshot();
    final LeaseBarrier.Snapshot own = peer.snapshot();
    assertThat(snapshot.passed()).isFalse();
    assertThat(own.passed()).isFalse();
    lease.close();
    assertThat(snapshot.passed()).isTrue();
    assertThat(own.passed()).isTrue();
  }

  @Test
  void aPeerThatIsGoneHoldsNothingUp() {
    final int block = table.connect();
    final LanePool peer = lanes(block);
    final LanePool.Lease lease = take(peer);
    final LeaseBarrier.Snapshot snapshot = table.snapshot();
    assertThat(snapshot.passed()).isFalse();
    connected = false;
    table.disconnect(block);
    assertThat(snapshot.passed()).isTrue();
    assertThat(table.snapshot().passed()).isTrue();
    assertThat(take(peer)).as("no lease without a connection").isNull();
    lease.close();
    assertThat(peer.openLeases()).isZero();
    assertThat(table.connected()).isZero();
  }

  /** The connection is lost, and nobody here has heard of it. */
  @Test
  void whoseLeasesWereDroppedFindsOutByItself() {
    final int block = table.connect();
    final LanePool peer = lanes(block);
    final LanePool.Lease lease = take(peer);
    assertThat(peer.intact()).isTrue();
    table.disconnect(block);
    assertThat(peer.intact()).isFalse();
    assertThat(take(peer)).as("a lease that holds nothing").isNull();
    final int at = LaneLayout.offset(LaneLayout.firstLane(block)) + LaneLayout.DONE;
    words.putInt(at, 77);
    lease.close();
    assertThat(words.getInt(at)).as("another peer's lane").isEqualTo(77);
    assertThat(peer.openLeases()).isZero();
  }

  @Test
  void leasesThatAFrozenOwnerDropsWereIntact() {
    final LanePool local = lanes(0);
    final int block = table.connect();
    final LanePool peer = lanes(block);
    final LanePool.Lease lease = take(peer);
    table.freeze();
    table.disconnect(block);
    assertThat(peer.intact()).isTrue();
    assertThat(local.intact()).isTrue();
    lease.close();
  }

  /** It looks at the leases for the last time between a reader's look at it and its store. */
  @Test
  void ofAnOwnerThatEndsAndHasSeenNoLeaseNoneIsHad() {
    final AtomicBoolean frozen = new AtomicBoolean();
    final LanePool local =
        new LanePool(
            words,
            0,
            table.generation(0),
            () -> {
              final boolean isOpen = !frozen.getAndSet(true);
              if (isOpen) {
                root.end();
                assertThat(table.snapshot().passed()).as("it frees everything now").isTrue();
              }
              return isOpen;
            },
            Clock.system());
    assertThat(take(local)).isNull();
    assertThat(frozen).isTrue();
    assertThat(local.openLeases()).isZero();
  }

  /** One that drops leases and overwrites at once, against one that reads and then asks. */
  @Test
  void whatWasOverwrittenIsNeverFoundIntact() {
    final AtomicLong memory = new AtomicLong();
    final long deadline = System.nanoTime() + LIMIT_NANOS;
    for (int round = 1; round <= ROUNDS; round++) {
      final int block = table.connect();
      final LanePool peer = lanes(block);
      final LanePool.Lease lease = take(peer);
      final LeaseBarrier.Snapshot snapshot = table.snapshot();
      memory.setPlain(0);
      final CompletableFuture<Boolean> reuse =
          CompletableFuture.supplyAsync(
              () -> {
                table.disconnect(block);
                final boolean passed = snapshot.passed();
                memory.setPlain(1);
                return passed;
              });
      boolean intact = true;
      while (intact) {
        final long seen = memory.getPlain();
        intact = peer.intact();
        if (intact && (seen == 1 || System.nanoTime() - deadline > 0)) {
          throw new AssertionError("round " + round + ": " + seen + " was read, and believed");
        }
      }
      lease.close();
      assertThat(reuse.join()).isTrue();
    }
  }

  @Test
  void aBlockThatIsGivenAgainStartsWithNoLeaseOpen() {
    for (int i = 0; i < 3 * LaneLayout.PEER_BLOCKS; i++) {
      final int block = table.connect();
      take(lanes(block));
      table.disconnect(block);
      assertThat(table.snapshot().passed()).isTrue();
    }
    final List<Integer> blocks = new ArrayList<>();
    for (int block = table.connect(); block >= 0; block = table.connect()) {
      assertThat(blocks).doesNotContain(block);
      blocks.add(block);
    }
    assertThat(blocks).hasSize(LaneLayout.PEER_BLOCKS);
    assertThat(table.snapshot().passed()).isTrue();
  }

  @Test
  void whenNoLaneIsFreeTheWaitEnds() {
    final LanePool peer = lanes(table.connect());
    final List<LanePool.Lease> all = new ArrayList<>();
    for (int i = 0; i < LaneLayout.PEER_LANES; i++) {
      all.add(take(peer));
    }
    assertThat(take(peer)).isNull();
    assertThatThrownBy(() -> peer.take(Duration.ofMinutes(5), () -> true))
        .isInstanceOf(WaitException.class);
    all.forEach(LanePool.Lease::close);
    assertThat(take(peer)).isNotNull();
  }
}
