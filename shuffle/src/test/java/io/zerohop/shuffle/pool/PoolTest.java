package io.zerohop.shuffle.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.PoolSegment.FreeMap;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class PoolTest {
  private static final long LIMIT = 8L << 20;
  private static final long SEGMENT = 1L << 20;
  private static final Config CONF =
      Config.defaults().with("pool.size", LIMIT).with("segment.size", SEGMENT);

  private final Leaks leaks = new Leaks();
  private final HostDevice device = new HostDevice();
  private final Names names = new Names();
  private final Pool pool =
      new Pool(device, Tier.HOST, PeerAccess.READ, names, CONF, Clock.system());

  @AfterEach
  void noLeaks() {
    pool.close();
    assertThat(names.inUse).isEmpty();
    device.close();
    leaks.check();
  }

  @Test
  void thePeakStaysWhenRegionsGo() {
    final Region region = pool.allocate(SEGMENT);
    region.release();
    pool.allocate(SEGMENT / 2).release();
    assertThat(pool.stats().peakBytes()).isEqualTo(SEGMENT);
    assertThat(pool.stats().usedBytes()).isZero();
    assertThat(pool.stats().limitBytes()).isEqualTo(LIMIT);
  }

  @Test
  void aPausedPoolRefusesAndKeepsNothingEmpty() {
    final Region region = pool.allocate(SEGMENT / 2);
    pool.pause(Duration.ofHours(1));
    assertThatThrownBy(() -> pool.allocate(1))
        .isInstanceOf(PoolFullException.class)
        .hasMessageContaining("spark.zerohop.pool.size");
    pool.trim();
    assertThat(pool.stats().reservedBytes()).as("it holds something").isEqualTo(SEGMENT);
    region.release();
    assertThat(pool.stats().emptyBytes()).isEqualTo(SEGMENT);
    pool.trim();
    assertThat(pool.stats().reservedBytes()).isZero();
    assertThat(pool.stats().returnedBytes()).isEqualTo(SEGMENT);
    pool.pause(Duration.ZERO);
    pool.allocate(SEGMENT / 2).release();
    pool.trim();
    assertThat(pool.stats().reservedBytes()).as("it is kept again").isEqualTo(SEGMENT);
  }

  /** Regions carry a pattern of their own; one that overlapped another would lose it. */
  @Test
  void regionsNeverOverlapWhateverTheOrder() {
    for (int seed = 0; seed < 4; seed++) {
      final Random random = new Random(seed);
      final List<Region> regions = new ArrayList<>();
      final List<Long> patterns = new ArrayList<>();
      long bytes = 0;
      for (int step = 0; step < 4_000; step++) {
        final int shape = random.nextInt(100);
        if (shape < 55) {
          final int wanted =
              1 + random.nextInt(shape == 0 ? 3 << 20 : shape < 20 ? 200_000 : 4_000);
          try {
            final Region region = pool.allocate(wanted);
            assertThat(region.bytes()).isGreaterThanOrEqualTo(wanted);
            assertThat(region.address() % FreeMap.ALIGNMENT).isZero();
            assertThat(pool.resolve(region.memory().id())).isSameAs(region.memory());
            final long pattern = random.nextLong();
            fill(region, pattern);
            regions.add(region);
            patterns.add(pattern);
            bytes += region.bytes();
          } catch (final PoolFullException e) {
            assertThat(e).hasMessageContaining("spark.zerohop.pool.size");
            assertThat(e).hasMessageContaining(wanted + " bytes");
          }
        } else if (!regions.isEmpty()) {
          final int index = random.nextInt(regions.size());
          final Region region = regions.get(index);
          check(region, patterns.get(index));
          if (shape < 65) {
            assertThat(region.retain()).isTrue();
            region.release();
          } else {
            regions.remove(index);
            patterns.remove(index);
            bytes -= region.bytes();
            region.release();
            assertThat(region.retain()).isFalse();
          }
        }
        assertThat(pool.stats().usedBytes()).isEqualTo(bytes);
        assertThat(pool.stats().regions()).isEqualTo(regions.size());
        assertThat(pool.stats().reservedBytes()).isBetween(bytes, LIMIT);
      }
      for (int i = 0; i < regions.size(); i++) {
        check(regions.get(i), patterns.get(i));
        regions.get(i).release();
      }
      assertThat(pool.stats().usedBytes()).isZero();
    }
    final Region all = pool.allocate(LIMIT);
    assertThat(pool.stats().segments()).as("empty segments make way").isEqualTo(1);
    all.release();
    assertThat(pool.stats().segments()).as("a dedicated segment goes with its region").isZero();
  }

  @Test
  void whatIsReclaimedOnShortageIsUsed() {
    final Region only = pool.allocate(LIMIT);
    final int[] calls = {0};
    pool.onShortage(
        () -> {
          calls[0]++;
          only.release();
        });
    final Region next = pool.allocate(LIMIT);
    assertThat(calls[0]).isEqualTo(1);
    pool.onShortage(() -> calls[0]++);
    assertThatThrownBy(() -> pool.allocate(1)).isInstanceOf(PoolFullException.class);
    assertThat(calls[0]).isEqualTo(2);
    next.release();
  }

  @Test
  void segmentIdsAreNeverUsedAgain() {
    final Set<Long> seen = new HashSet<>();
    for (int i = 0; i < 200; i++) {
      final Region region = pool.allocate(2 * SEGMENT);
      final long id = region.memory().id();
      assertThat(seen.add(id)).isTrue();
      region.release();
      assertThat(pool.resolve(id)).isNull();
      assertThat(pool.export(id)).isNull();
    }
  }

  @Test
  void emptySegmentsStayForAWhile() {
    pool.allocate(100).release();
    pool.trim();
    assertThat(pool.stats().segments()).as("kept for the next shuffle").isOne();
    try (Pool impatient =
        new Pool(
            device,
            Tier.HOST,
            PeerAccess.READ,
            names,
            CONF.with("segment.idle", Duration.ZERO),
            Clock.system())) {
      final Region kept = impatient.allocate(100);
      impatient.trim();
      assertThat(impatient.stats().segments()).as("in use").isOne();
      kept.release();
      impatient.trim();
      assertThat(impatient.stats().segments()).isZero();
      assertThat(impatient.stats().reservedBytes()).isZero();
    }
  }

  @Test
  void whatIsFreedIsNotUsedAgainOnceThePoolIsFrozenForFiles() {
    final Region kept = pool.allocate(100);
    pool.freezeForFiles();
    kept.release();
    assertThatThrownBy(() -> pool.allocate(1))
        .isInstanceOf(PoolFullException.class)
        .hasMessageContaining("frozen");
  }

  @Test
  void aFrozenPoolGivesNothing() {
    pool.freeze();
    assertThatThrownBy(() -> pool.allocate(1)).hasMessageContaining("shutting down");
  }

  @Test
  void releasingTwiceIsNoticed() {
    final Region region = pool.allocate(1);
    region.release();
    assertThatThrownBy(region::release).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void retiredRegionsWaitForTheirReaders() {
    final boolean[] passed = {false};
    final Reclaimer reclaimer = new Reclaimer(() -> () -> passed[0]);
    reclaimer.retire(List.of(pool.allocate(100), pool.allocate(100)));
    reclaimer.poll();
    assertThat(reclaimer.waitingRegions()).isEqualTo(2);
    assertThat(pool.stats().regions()).isEqualTo(2);
    passed[0] = true;
    reclaimer.poll();
    assertThat(reclaimer.waitingRegions()).isZero();
    assertThat(pool.stats().regions()).isZero();
    reclaimer.retire(List.of(pool.allocate(100)));
    assertThat(pool.stats().regions()).as("nobody reads: freed at once").isZero();
  }

  @Test
  void aRegionWaitsUntilItIsFree() {
    final boolean[] passed = {false};
    final Reclaimer reclaimer = new Reclaimer(() -> () -> passed[0]);
    final List<Long> seen = new ArrayList<>();
    // A pool asks for the time while it frees a region.
    final Clock watching =
        (Clock)
            Proxy.newProxyInstance(
                Clock.class.getClassLoader(),
                new Class<?>[] {Clock.class},
                (proxy, method, arguments) -> {
                  seen.add(reclaimer.waitingBytes(any -> true));
                  return method.invoke(Clock.system(), arguments);
                });
    try (Pool watched = new Pool(device, Tier.HOST, PeerAccess.READ, names, CONF, watching)) {
      final Region region = watched.allocate(100);
      final long bytes = region.bytes();
      reclaimer.retire(List.of(region));
      seen.clear();
      passed[0] = true;
      reclaimer.poll();
      assertThat(seen).as("while it is freed").isNotEmpty().containsOnly(bytes);
      assertThat(reclaimer.waitingBytes(any -> true)).isZero();
      assertThat(watched.stats().regions()).isZero();
      reclaimer.drop();
    }
  }

  private static void fill(final Region region, final long pattern) {
    final UnsafeBuffer buffer = new UnsafeBuffer(region.address(), (int) region.bytes());
    for (int i = 0; i < buffer.capacity(); i += 8) {
      buffer.putLong(i, pattern + i);
    }
  }

  private static void check(final Region region, final long pattern) {
    final UnsafeBuffer buffer = new UnsafeBuffer(region.address(), (int) region.bytes());
    for (int i = 0; i < buffer.capacity(); i += 8) {
      if (buffer.getLong(i) != pattern + i) {
        throw new AssertionError("region lost its bytes at " + i);
      }
    }
  }

  private static final class Names implements SegmentRegistry {
    private final Set<Long> inUse = new HashSet<>();
    private long generation;

    private long lendable;

    @Override
    public long register(final Naming naming) {
      final long id = naming.id(++generation, slot());
      inUse.add(id);
      return id;
    }

    private int slot() {
      int slot = 0;
      for (final long id : inUse) {
        slot = Math.max(slot, SegmentIds.slot(id) + 1);
      }
      return slot;
    }

    @Override
    public void lendable(final long bytes) {
      lendable = bytes;
    }

    @Override
    public void retire(final long segmentId) {
      assertThat(inUse.remove(segmentId)).isTrue();
    }
  }
}
