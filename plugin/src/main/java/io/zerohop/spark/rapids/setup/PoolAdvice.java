package io.zerohop.spark.rapids.setup;

import io.zerohop.spark.conf.RapidsKeys;
import io.zerohop.spark.log.SparkCode;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Advises on RAPIDS' memory pool if an exchange to many partitions uses RAPIDS' own split ({@link
 * KudoRule}). cudf allocates for each partition, and tasks contend for the driver's pool
 * (docs/rapids.md, "Many partitions"). The pool is the user's choice, so it is left as it is. For
 * the driver; thread safe.
 */
public final class PoolAdvice {
  public static final String POOL = "spark.rapids.memory.gpu.pool";
  static final int MANY_PARTITIONS = 1000;
  private static final Logger LOG = LoggerFactory.getLogger(PoolAdvice.class);
  private static final AtomicBoolean SAID = new AtomicBoolean();

  private PoolAdvice() {}

  /** Whether another pool would help a shuffle of so many partitions. */
  static boolean applies(final SparkConf conf, final int partitions) {
    final String pool = RapidsKeys.get(conf, POOL, "ASYNC").trim().toUpperCase(Locale.ROOT);
    return partitions >= MANY_PARTITIONS && (pool.isEmpty() || pool.equals("ASYNC"));
  }

  /** Says it once in an application. */
  static void give(final SparkConf conf, final int partitions) {
    if (applies(conf, partitions) && !SAID.getAndSet(true)) {
      SparkCode.ARENA_ADVISED
          .says(
              "RAPIDS splits the batches of a shuffle itself, so its map tasks spend much time on"
                  + " allocations")
          .at(partitions + " partitions")
          .remedy("set " + POOL + "=ARENA (docs/rapids.md)")
          .warn(LOG);
    }
  }
}
