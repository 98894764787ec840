package io.zerohop.spark.rapids.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import io.zerohop.spark.rapids.api.SpillStore;
import io.zerohop.spark.rapids.setup.PoolAdvice;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/**
 * What RAPIDS is told when it looks for memory. There is no RAPIDS here, so a pool plays its part.
 */
class DevicePressureTest {
  private static final long MIB = 1L << 20;

  /** A pool that gives what it has, or fails. */
  private static final class FakePool implements DevicePressure.Pool {
    private final List<String> asked = new ArrayList<>();
    private long spare;
    private long gives;
    private boolean fails;

    @Override
    public long shrinkableDeviceBytes(final EvictionScope reach) {
      return spare;
    }

    @Override
    public long shrinkDevicePool(
        final long bytes, final EvictionScope reach, final Duration limit) {
      if (fails) {
        throw new IllegalStateException("it fails");
      }
      assertThat(limit).isPositive();
      asked.add(reach + " " + bytes / MIB);
      return gives;
    }
  }

  private final FakePool pool = new FakePool();
  private long owed = 100 * MIB;
  private final DevicePressure pressure = new DevicePressure(pool, () -> owed, Clock.system());

  @Test
  void rapidsMayStillTakeWhatItsLimitLeavesAndTheDriverLacksSomeOfIt() {
    assertThat(DevicePressure.owed(10, 4, 1)).isEqualTo(5);
    assertThat(DevicePressure.owed(10, 4, 6)).as("its limit stands in the way").isZero();
    assertThat(DevicePressure.owed(10, 10, 0)).isZero();
    assertThat(DevicePressure.owed(Long.MAX_VALUE, 4, 6)).isEqualTo(Long.MAX_VALUE - 10);
  }

  @Test
  void poolsThatHaveAllTheirMemoryFromTheStartDoNotAsk() {
    assertThat(DevicePressure.applies(pool(""))).isTrue();
    assertThat(DevicePressure.applies(pool("async"))).isTrue();
    assertThat(DevicePressure.applies(pool(" NONE"))).isTrue();
    assertThat(DevicePressure.applies(pool("ARENA"))).isFalse();
    assertThat(DevicePressure.applies(pool("DEFAULT"))).isFalse();
    assertThat(DevicePressure.applies(new SparkConf(false))).isTrue();
    assertThat(DevicePressure.applies(pool("NONE").set(DevicePressure.ENABLED, "false"))).isFalse();
  }

  private static SparkConf pool(final String name) {
    return new SparkConf(false).set(PoolAdvice.POOL, name);
  }

  @Test
  void aPlaceSaysAndAsksForWhatWouldHelp() {
    final SpillStore.Place place = pressure.place(EvictionScope.COLD);
    assertThat(place.bytes()).as("there is nothing").isZero();
    pool.spare = 30 * MIB;
    assertThat(place.bytes()).isEqualTo(30 * MIB);
    pool.spare = Long.MAX_VALUE;
    assertThat(place.bytes()).isEqualTo(owed);
    owed = 0;
    assertThat(place.bytes()).as("it would not help").isZero();
    owed = Long.MAX_VALUE;
    assertThat(place.bytes()).as("one step").isEqualTo(1024 * MIB);
    pool.gives = 7;
    assertThat(place.giveBack()).isEqualTo(7);
    assertThat(pressure.place(EvictionScope.ALL).giveBack()).isEqualTo(7);
    assertThat(pool.asked).containsExactly("COLD 1024", "ALL 1024");
    assertThat(place.bytes()).as("it can be asked again").isPositive();
  }

  @Test
  void whoCouldGiveNothingStandsAsideForOthers() {
    pool.spare = 30 * MIB;
    final SpillStore.Place place = pressure.place(EvictionScope.COLD);
    assertThat(place.giveBack()).isZero();
    assertThat(place.bytes()).isZero();
    assertThat(pressure.place(EvictionScope.ALL).bytes()).isEqualTo(30 * MIB);
  }

  @Test
  void aFailureIsNotRapids() {
    pool.spare = 30 * MIB;
    pool.fails = true;
    final SpillStore.Place place = pressure.place(EvictionScope.ALL);
    assertThat(place.giveBack()).isZero();
    assertThat(place.bytes()).isZero();
  }
}
