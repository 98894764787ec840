package io.zerohop.spark.rapids.pressure;

import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.Rmm;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.spill.Evictor;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import io.zerohop.spark.conf.RapidsKeys;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import io.zerohop.spark.rapids.api.SpillStore;
import io.zerohop.spark.rapids.setup.PoolAdvice;
import io.zerohop.spark.rapids.setup.RapidsMode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.apache.spark.SparkConf;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets RAPIDS request GPU memory from Zerohop's pool before its tasks fail. It is asked twice:
 * ahead of what RAPIDS would spill for what nobody uses, and behind that for what is in use, too.
 * Where the pool cannot help, because RAPIDS has reached a limit of its own, it is not asked.
 * Thread safe; the owner closes it before the node.
 */
public final class DevicePressure implements AutoCloseable {
  /** Not for users: tests turn it off to see what happens without. */
  static final String ENABLED = "spark.zerohop.internal.shrink";

  private static final Logger LOG = LoggerFactory.getLogger(DevicePressure.class);

  /** RAPIDS' pools that take more of the driver as they need it; others have all at the start. */
  private static final Set<String> GROWING = Set.of("ASYNC", "NONE");

  /** RAPIDS does not say how much it needs. Its batches have up to 1 GiB, and it asks again. */
  private static final long ASK_BYTES = 1L << 30;

  /**
   * RAPIDS' thread waits in the meantime. As many bytes take a tenth of a second over PCIe, and
   * their host segments as long to be pinned; the rest is for readers to let go.
   */
  private static final Duration LIMIT = Duration.ofSeconds(2);

  private final Pool pool;
  private final LongSupplier owed;
  private final Clock clock;
  private final AtomicBoolean said = new AtomicBoolean();
  private final List<Object> handles = new ArrayList<>();

  /** Absent where RAPIDS is not asked. */
  private @Nullable SpillStore store;

  /** The methods of a plan's node that are called by name. */
  interface Pool {
    long shrinkableDeviceBytes(EvictionScope reach);

    long shrinkDevicePool(long bytes, EvictionScope reach, Duration limit);
  }

  /**
   * @param owed bytes that RAPIDS may still take, but the driver does not have
   * @param clock by which it is quiet
   */
  DevicePressure(final Pool pool, final LongSupplier owed, final Clock clock) {
    this.pool = pool;
    this.owed = owed;
    this.clock = clock;
  }

  /** Begins; where that cannot be, it says so, and RAPIDS does without. */
  public static DevicePressure answer(final SparkConf conf, final ShuffleNode node) {
    final DevicePressure pressure =
        new DevicePressure(of(node), DevicePressure::owed, Clock.system());
    if (applies(conf)) {
      pressure.register();
    }
    return pressure;
  }

  private static Pool of(final ShuffleNode node) {
    return new Pool() {
      @Override
      public long shrinkableDeviceBytes(final EvictionScope reach) {
        return node.shrinkableDeviceBytes(reach);
      }

      @Override
      public long shrinkDevicePool(
          final long bytes, final EvictionScope reach, final Duration limit) {
        return node.shrinkDevicePool(bytes, reach, limit);
      }
    };
  }

  /** Whether RAPIDS' pool could use what ours gives back. */
  static boolean applies(final SparkConf conf) {
    final String pool = RapidsKeys.get(conf, PoolAdvice.POOL, "").trim().toUpperCase(Locale.ROOT);
    return (pool.isEmpty() || GROWING.contains(pool))
        && conf.getBoolean(ENABLED, true)
        && RapidsMode.has(conf, RapidsFeature.SPILL_STORE);
  }

  private void register() {
    try {
      final SpillStore found = SpillStore.find();
      store = found;
      handles.add(found.add(Long.MIN_VALUE, place(EvictionScope.COLD)));
      handles.add(found.add(Long.MAX_VALUE, place(EvictionScope.ALL)));
      LOG.debug("RAPIDS asks Zerohop's pool in GPU memory when it runs out of memory");
    } catch (final Throwable e) {
      SparkCode.SPILL_STORE_UNKNOWN
          .says(
              "cannot register with RAPIDS' spill framework, so RAPIDS cannot ask the pool in GPU"
                  + " memory to shrink")
          .because(e)
          .remedy("leave enough GPU memory free for the pool by " + RapidsMode.RESERVE)
          .warn(LOG);
    }
  }

  private static long owed() {
    final long limit = Rmm.isPoolingEnabled() ? Rmm.getPoolSize() : Long.MAX_VALUE;
    return owed(limit, Rmm.getTotalBytesAllocated(), Cuda.memGetInfo().free);
  }

  /**
   * Bytes that RAPIDS may still take, but the driver does not have.
   *
   * @param limit of RAPIDS' pool
   * @param allocated of it
   * @param free by the driver
   */
  static long owed(final long limit, final long allocated, final long free) {
    return Math.max(0, limit - allocated - free);
  }

  /** What RAPIDS asks for bytes. */
  SpillStore.Place place(final EvictionScope reach) {
    return new PoolPlace(reach);
  }

  private final class PoolPlace implements SpillStore.Place {
    private final EvictionScope reach;
    private volatile boolean quiet;
    private volatile long quietUntil;

    PoolPlace(final EvictionScope reach) {
      this.reach = reach;
    }

    /** As much as there is, or RAPIDS would not look for more behind it. */
    @Override
    public long bytes() {
      if (quiet && !clock.isOver(quietUntil)) {
        return 0;
      }
      try {
        final long spare = pool.shrinkableDeviceBytes(reach);
        return spare == 0 ? 0 : Math.min(spare, wanted());
      } catch (final RuntimeException e) {
        SparkCode.SPARE_UNKNOWN
            .says("cannot tell how much GPU memory the pool could release")
            .warn(LOG, e);
        return 0;
      }
    }

    private long wanted() {
      return Math.min(ASK_BYTES, owed.getAsLong());
    }

    @Override
    public long giveBack() {
      long given = 0;
      try {
        given = pool.shrinkDevicePool(wanted(), reach, LIMIT);
      } catch (final RuntimeException e) {
        SparkCode.SHRINK_FAILED
            .says("the pool could not release GPU memory for RAPIDS")
            .warn(LOG, e);
      }
      // Without this RAPIDS would not get to what it could spill itself.
      quietUntil = clock.in(Evictor.SHRINK_PAUSE);
      quiet = given == 0;
      if (given > 0 && said.compareAndSet(false, true)) {
        SparkCode.POOL_SHRUNK
            .says(
                "RAPIDS ran out of GPU memory, so Zerohop's pool released "
                    + (given >> 20)
                    + " MiB and moved blocks to host memory")
            .remedy(
                "lower spark.zerohop.device.pool.size, or leave as much free by "
                    + RapidsMode.RESERVE)
            .warn(LOG);
      }
      return given;
    }
  }

  /** Ends; idempotent. */
  @Override
  public void close() {
    final SpillStore from = store;
    try {
      if (from != null) {
        for (final Object handle : handles) {
          from.remove(handle);
        }
      }
    } catch (final Throwable e) {
      LOG.debug("RAPIDS has ended before", e);
    }
    handles.clear();
  }
}
