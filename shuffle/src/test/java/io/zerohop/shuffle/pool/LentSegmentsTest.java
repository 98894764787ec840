package io.zerohop.shuffle.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Device;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.Leaks;
import io.zerohop.device.Message;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.TestClock;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.BorrowedSegments.Loan;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The rules by which a pool lends and borrows, without a peer. */
class LentSegmentsTest {
  private static final long SEGMENT = 1L << 20;
  private static final long LIMIT = 16 * SEGMENT;
  private static final long ONE = 1;
  private static final long OTHER = 2;

  private final Leaks leaks = new Leaks();
  private final HostDevice device = new HostDevice();
  private final RootSegment root = new RootSegment(device, 7);
  private final RootView view = new RootView(root.memory(), 7, "self");
  private final TestClock clock = TestClock.standing();
  private final Pool pool =
      new Pool(
          device,
          Tier.DEVICE,
          PeerAccess.READ,
          root,
          Config.defaults()
              .with("device.pool.size", LIMIT)
              .with("device.segment.size", SEGMENT)
              .with("segment.idle", Duration.ofMinutes(1)),
          clock);
  private final List<Loan> given = new ArrayList<>();

  @AfterEach
  void noLeaks() {
    pool.close();
    root.close();
    device.close();
    leaks.check();
  }

  /** Lends one segment; returns its id, or 0 if none is lent. */
  private long lend(final long borrower, final long bytes) {
    final PeerLink.Loan loan = pool.lent().lend(borrower, bytes);
    if (loan == null) {
      return 0;
    }
    assertThat(loan.handle().bytes()).isEqualTo(bytes);
    loan.handle().close();
    return loan.segmentId();
  }

  private List<Long> lendAll(final long borrower) {
    final List<Long> ids = new ArrayList<>();
    for (long id = lend(borrower, SEGMENT); id != 0; id = lend(borrower, SEGMENT)) {
      ids.add(id);
    }
    return ids;
  }

  @Test
  void peersSeeWhatTheyMayBorrowAndWhatIsRecalled() {
    assertThat(view.lendable()).isEqualTo(LIMIT / 2);
    final long id = lend(ONE, SEGMENT);
    assertThat(SegmentIds.isLent(id)).isTrue();
    assertThat(SegmentIds.tier(id)).as("nobody reads it by this id").isNull();
    assertThat(pool.resolve(id)).isNull();
    assertThat(view.inUse(id)).isTrue();
    pool.lent().recall(1);
    assertThat(view.inUse(id)).isFalse();
    assertThat(pool.lent().bytes()).as("until it is back").isEqualTo(SEGMENT);
    pool.lent().takeBack(OTHER, id);
    assertThat(pool.lent().bytes()).as("it is not the other's").isEqualTo(SEGMENT);
    pool.lent().takeBack(ONE, id);
    pool.lent().takeBack(ONE, id);
    assertThat(pool.lent().bytes()).isZero();
    assertThat(pool.stats().reservedBytes()).isZero();
    assertThat(pool.stats().returnedBytes()).isEqualTo(SEGMENT);
    pool.pause(Duration.ofMinutes(1));
    pool.trim();
    assertThat(view.lendable()).isZero();
    assertThat(lend(ONE, SEGMENT)).as("while others need the memory").isZero();
  }

  @Test
  void onlyWholeGranulesOfASegmentAreLent() {
    for (final long bytes :
        new long[] {0, -1, Long.MIN_VALUE, 1, SEGMENT + 1, Pool.MAX_SEGMENT_BYTES + 4096}) {
      assertThat(lend(ONE, bytes)).as("%d bytes", bytes).isZero();
    }
    assertThat(lend(ONE, 3 * SEGMENT)).isPositive();
  }

  @Test
  void itLendsWhileAQuarterStaysFree() {
    final Region region = pool.allocate(9 * SEGMENT);
    assertThat(lendAll(ONE)).hasSize(3);
    region.release();
    assertThat(lendAll(ONE)).hasSize(5);
    assertThat(pool.lent().bytes()).isEqualTo(LIMIT / 2);
  }

  @Test
  void emptySegmentsMakeRoom() {
    final List<Region> regions = new ArrayList<>();
    for (int i = 0; i < 15; i++) {
      regions.add(pool.allocate(SEGMENT));
    }
    assertThat(lend(ONE, SEGMENT)).isZero();
    regions.forEach(Region::release);
    assertThat(pool.stats().reservedBytes()).isEqualTo(15 * SEGMENT);
    assertThat(lendAll(ONE)).hasSize(8);
    assertThat(pool.stats().reservedBytes()).isLessThanOrEqualTo(LIMIT);
  }

  @Test
  void whoHasMoreThanItsShareGivesBackAndGetsNoMoreWhileAnotherWaits() {
    final List<Long> first = lendAll(ONE);
    assertThat(first).hasSize(8);
    assertThat(lend(OTHER, SEGMENT)).isZero();
    assertThat(view.inUse(first.get(0))).as("recalled").isFalse();
    assertThat(lend(OTHER, SEGMENT)).isZero();
    assertThat(view.inUse(first.get(1))).as("one at a time").isTrue();
    pool.lent().takeBack(ONE, first.get(0));
    assertThat(lend(ONE, SEGMENT)).as("the other waits").isZero();
    assertThat(lend(OTHER, SEGMENT)).isPositive();

    assertThat(lend(OTHER, SEGMENT)).isZero();
    assertThat(view.inUse(first.get(1))).isFalse();
    pool.lent().takeBackAll(ONE);
    assertThat(lendAll(OTHER)).as("nobody else is there").hasSize(7);
    assertThat(lend(ONE, SEGMENT)).isZero();
    clock.advance(Duration.ofSeconds(2));
    pool.lent().takeBackAll(OTHER);
    assertThat(lendAll(OTHER)).as("who waited has given up").hasSize(8);
  }

  @Test
  void aPoolThatNeedsItsMemoryRecallsIt() {
    final List<Long> ids = lendAll(ONE);
    final List<Region> regions = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      regions.add(pool.allocate(SEGMENT));
    }
    assertThat(pool.stats().loans().recalledSegments()).isZero();
    try {
      pool.allocate(SEGMENT);
      throw new AssertionError("there was room");
    } catch (final PoolFullException e) {
      assertThat(view.inUse(ids.get(0))).isFalse();
      assertThat(view.inUse(ids.get(1))).as("an eighth").isFalse();
      assertThat(view.inUse(ids.get(2))).isTrue();
    }
    pool.lent().takeBack(ONE, ids.get(0));
    regions.add(pool.allocate(SEGMENT));
    regions.forEach(Region::release);
  }

  /** It may be stopped. */
  @Test
  void whoIgnoresARecallKeepsNobodyElseFromBeingAsked() {
    final List<Long> ids = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      ids.add(lend(ONE, SEGMENT));
    }
    for (int i = 0; i < 4; i++) {
      ids.add(lend(OTHER, SEGMENT));
    }
    for (int asked = 4; asked <= 8; asked += 4) {
      pool.lent().recall(4 * SEGMENT);
      pool.lent().recall(4 * SEGMENT);
      assertThat(ids)
          .filteredOn(id -> !view.inUse(id))
          .containsExactlyElementsOf(ids.subList(0, asked));
      clock.advance(Duration.ofSeconds(1));
    }
    pool.lent().recall(LIMIT);
    assertThat(pool.stats().loans().recalledSegments()).isEqualTo(8);
  }

  @Test
  void aShareIsRecalledOfTheRichestWhoDoesNotIgnoreIt() {
    final List<Long> first = lendAll(ONE);
    for (int asked = 1; asked < 5; asked++) {
      assertThat(lend(OTHER, SEGMENT)).isZero();
      assertThat(lend(OTHER, SEGMENT)).isZero();
      assertThat(first).filteredOn(id -> !view.inUse(id)).hasSize(asked);
      clock.advance(Duration.ofSeconds(1));
    }
    assertThat(lend(OTHER, SEGMENT)).isZero();
    assertThat(first).filteredOn(view::inUse).as("its share").hasSize(4);
  }

  /** Lends all it can, and has little left itself. */
  private List<Region> lendAndFill() {
    lendAll(ONE);
    final List<Region> regions = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      regions.add(pool.allocate(SEGMENT));
    }
    return regions;
  }

  @Test
  void aLenderBorrowsNothingWhileItCanRecallAndIsNotAskedAllTheTime() {
    final int[] asked = new int[1];
    pool.borrowed().onNearlyFull(() -> asked[0]++);
    final List<Region> regions = lendAndFill();
    assertThat(asked[0]).isEqualTo(1);
    assertThat(pool.borrowed().wanted()).isZero();
    for (int i = 0; i < 10; i++) {
      regions.add(pool.allocate(1));
    }
    assertThat(asked[0]).as("it pauses").isEqualTo(1);
    clock.advance(Duration.ofMillis(50));
    regions.add(pool.allocate(1));
    assertThat(asked[0]).isEqualTo(2);
    assertThat(pool.stats().loans().recalledSegments()).isZero();
    pool.lent().recall(LIMIT);
    assertThat(pool.borrowed().wanted()).as("all is on its way").isEqualTo(SEGMENT);
    regions.forEach(Region::release);
  }

  @Test
  void nothingIsRecalledForARegionThatNeverFits() {
    lendAll(ONE);
    assertThatThrownBy(() -> pool.allocate(LIMIT + 1)).isInstanceOf(PoolFullException.class);
    assertThat(pool.stats().loans().recalledSegments()).isZero();
  }

  @Test
  void smallLoansLeaveTheTableToOthers() {
    int loans = 0;
    while (lend(ONE, device.granularity()) != 0) {
      loans++;
    }
    assertThat(loans).isEqualTo(SegmentIds.MAX_SLOTS / 4);
    assertThat(pool.lent().bytes()).isLessThan(LIMIT / 2);
  }

  @Test
  void countsStayRightIfADriverDoesNotFree() {
    final Device broken = proxy(Device.class, device, Map.of("allocate", this::brokenSegment));
    try (Pool other =
        new Pool(
            broken,
            Tier.DEVICE,
            PeerAccess.READ,
            root,
            Config.defaults().with("device.pool.size", LIMIT),
            clock)) {
      exports = false;
      assertThatThrownBy(() -> other.lent().lend(ONE, SEGMENT)).hasMessage("not freed");
      assertThat(other.lent().bytes()).isZero();
      assertThat(other.stats().reservedBytes()).isZero();
      exports = true;
      for (int i = 0; i < 3; i++) {
        other.lent().lend(ONE, SEGMENT).handle().close();
      }
      assertThatThrownBy(() -> other.lent().takeBackAll(ONE)).hasMessage("not freed");
      assertThat(other.lent().bytes()).isZero();
      assertThat(other.stats().reservedBytes()).isZero();
    }
  }

  private boolean exports;

  /** Says that it was not freed, although it was. */
  private Object brokenSegment(final Object[] arguments) {
    final Segment segment = device.allocate((Long) arguments[0], (PeerAccess) arguments[1]);
    return proxy(
        Segment.class,
        segment,
        Map.of(
            "export",
            none -> {
              if (exports) {
                return segment.export();
              }
              throw new IllegalStateException("not exported");
            },
            "close",
            none -> {
              segment.close();
              throw new IllegalStateException("not freed");
            }));
  }

  /** An object of which some methods do something else. */
  private static <T> T proxy(
      final Class<T> type, final T real, final Map<String, Function<Object[], Object>> others) {
    final InvocationHandler handler =
        (proxy, method, arguments) -> {
          final Function<Object[], Object> other = others.get(method.getName());
          return other == null ? method.invoke(real, arguments) : other.apply(arguments);
        };
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
  }

  @Test
  void countsStayRightWhateverTheOrder() {
    final Random random = new Random(5);
    final List<Region> regions = new ArrayList<>();
    final List<long[]> loans = new ArrayList<>();
    for (int step = 0; step < 3_000; step++) {
      switch (random.nextInt(9)) {
        case 0, 1, 2 -> {
          final long borrower = random.nextInt(3);
          final long id = lend(borrower, SEGMENT * (1 + random.nextInt(2)));
          if (id != 0) {
            loans.add(new long[] {borrower, id});
          }
        }
        case 3, 4 -> {
          try {
            regions.add(pool.allocate(1 + random.nextInt(3 << 20)));
          } catch (final PoolFullException e) {
            assertThat(e).hasMessageContaining("pool");
          }
        }
        case 5 -> {
          if (!regions.isEmpty()) {
            regions.remove(random.nextInt(regions.size())).release();
          }
        }
        case 6 -> {
          if (!loans.isEmpty()) {
            final long[] loan = loans.remove(random.nextInt(loans.size()));
            pool.lent().takeBack(loan[0], loan[1]);
          }
        }
        case 7 -> pool.lent().recall(random.nextInt(2 << 20));
        default -> {
          final long gone = random.nextInt(30);
          pool.lent().takeBackAll(gone);
          loans.removeIf(loan -> loan[0] == gone);
          clock.advance(Duration.ofMillis(random.nextInt(2_000)));
          pool.trim();
        }
      }
      final PoolStats stats = pool.stats();
      assertThat(stats.loans().lentBytes()).isBetween(0L, LIMIT / 2);
      assertThat(stats.reservedBytes()).isBetween(stats.loans().lentBytes(), LIMIT);
      assertThat(stats.usedBytes() + stats.loans().lentBytes()).isLessThanOrEqualTo(LIMIT);
      assertThat(stats.loans().lentBytes() > 0).isEqualTo(!loans.isEmpty());
    }
    regions.forEach(Region::release);
    loans.forEach(loan -> pool.lent().takeBack(loan[0], loan[1]));
    pool.closeEmpty();
    assertThat(pool.stats().reservedBytes()).isZero();
  }

  @Test
  void aDeviceThatIsFullIsNotAskedAgainForAMoment() {
    final int[] calls = new int[1];
    final Device full =
        proxy(
            Device.class,
            device,
            Map.of(
                "allocate",
                arguments -> {
                  calls[0]++;
                  throw new DeviceMemoryException(Message.of("it is full"), SEGMENT, null);
                }));
    try (Pool other =
        new Pool(
            full,
            Tier.DEVICE,
            PeerAccess.READ,
            root,
            Config.defaults().with("device.pool.size", LIMIT),
            clock)) {
      assertThat(other.lent().lend(ONE, SEGMENT)).isNull();
      assertThat(other.lent().lend(ONE, SEGMENT)).isNull();
      assertThat(calls[0]).isEqualTo(1);
      assertThat(view.lendable()).isZero();
      assertThat(other.lent().bytes()).isZero();
      assertThat(other.stats().reservedBytes()).isZero();
      clock.advance(Duration.ofSeconds(2));
      other.trim();
      assertThat(view.lendable()).isEqualTo(LIMIT / 2);
      assertThat(other.lent().lend(ONE, SEGMENT)).isNull();
      assertThat(calls[0]).isEqualTo(2);
    }
  }

  /** A pool borrows of itself here, as it would of another. */
  private Loan borrow(final Pool borrower) {
    final PeerLink.Loan lent = pool.lent().lend(ONE, SEGMENT);
    final Segment segment;
    try (SegmentHandle handle = lent.handle()) {
      segment = device.borrow(handle, "a peer");
    }
    final Loan loan =
        new Loan() {
          @Override
          public void giveBack() {
            given.add(this);
            pool.lent().takeBack(ONE, lent.segmentId());
          }
        };
    assertThat(borrower.adopt(segment, loan)).isTrue();
    return loan;
  }

  @Test
  void borrowedSegmentsComeAfterOwnOnesAndGoWhenTheyAreRecalledAndEmpty() {
    final Config conf =
        Config.defaults()
            .with("device.pool.size", SEGMENT)
            .with("device.segment.size", SEGMENT)
            .with("segment.idle", Duration.ofMinutes(1));
    final int[] asked = new int[1];
    try (Pool small = new Pool(device, Tier.DEVICE, PeerAccess.READ, root, conf, clock)) {
      small.borrowed().onNearlyFull(() -> asked[0]++);
      final Region own = small.allocate(SEGMENT / 4);
      assertThat(asked[0]).isZero();
      final Region more = small.allocate(SEGMENT / 2);
      assertThat(asked[0]).as("less than half is left").isEqualTo(1);
      assertThat(small.borrowed().wanted()).isEqualTo(SEGMENT);
      final Loan loan = borrow(small);
      assertThat(small.borrowed().wanted()).isZero();
      final Region last = small.allocate(SEGMENT / 4);
      assertThat(last.isBorrowed()).isFalse();
      final Region borrowed = small.allocate(SEGMENT / 2);
      assertThat(borrowed.isBorrowed()).isTrue();
      assertThat(small.resolve(borrowed.memory().id())).isSameAs(borrowed.memory());
      small.export(borrowed.memory().id()).close();
      assertThat(small.stats().ownUsedBytes()).isEqualTo(SEGMENT);
      assertThat(small.stats().loans().borrowedFreeBytes()).isEqualTo(SEGMENT / 2);
      small.pause(Duration.ofSeconds(1));
      final Region paused = small.allocate(SEGMENT / 4);
      assertThat(paused.isBorrowed()).as("another GPU has the room").isTrue();

      small.recalled(loan);
      assertThat(borrowed.isRecalled()).isTrue();
      assertThat(small.hasRecalled()).isTrue();
      assertThat(small.stats().loans().borrowedFreeBytes()).isZero();
      paused.release();
      assertThat(given).isEmpty();
      borrowed.release();
      assertThat(given).containsExactly(loan);
      assertThat(small.hasRecalled()).isFalse();
      assertThat(pool.lent().bytes()).isZero();

      borrow(small);
      clock.advance(Duration.ofMinutes(2));
      small.trim();
      assertThat(given).as("empty for long").hasSize(2);
      borrow(small);
      List.of(own, more, last).forEach(Region::release);
      small.trim();
    }
    assertThat(given).as("with the pool").hasSize(3);
    assertThat(pool.lent().bytes()).isZero();
  }
}
