package io.zerohop.spark.rapids.checksum;

import io.zerohop.device.Message;
import io.zerohop.spark.log.SparkCode;
import java.lang.reflect.Field;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.sql.internal.SQLConf;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides whether map outputs of a GPU shuffle report row checksums (Spark 4.1 and later), from the
 * same keys as Spark's own exchange. Spark's scheduler acts on a checksum that has changed only
 * where the dependency says so by a field that RAPIDS' dependency leaves at its default, so it is
 * set here. Spark trusts the checksums then, instead of its static protection of non-deterministic
 * stages: of this shuffle, and of what a stage reads whose own shuffle has the field. So every
 * shuffle gets it; map outputs that cannot be hashed report a number of their attempt, which
 * differs each time.
 *
 * <p>For the driver. Thread safe.
 */
public final class RetryChecksums {
  static final String ENABLED = "spark.sql.shuffle.orderIndependentChecksum.enabled";
  static final String FULL_RETRY =
      "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch";
  static final String QUERY_ROLLBACK =
      "spark.sql.shuffle.orderIndependentChecksum.enableQueryLevelRollbackOnMismatch";

  private static final Logger LOG = LoggerFactory.getLogger(RetryChecksums.class);
  private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

  private RetryChecksums() {}

  /** The fields of Spark's dependency; absent where this Spark has none, or lets nobody set it. */
  private static final class Fields {
    /** By its name in Spark 4.1, and in 4.2. */
    static final @Nullable Field FULL_RETRY =
        settable("checksumMismatchFullRetryEnabled", "_checksumMismatchFullRetryEnabled");

    /** From Spark 4.2 on. */
    static final @Nullable Field QUERY_ROLLBACK =
        settable("checksumMismatchQueryLevelRollbackEnabled");

    private static @Nullable Field settable(final String... names) {
      for (final String name : names) {
        try {
          final Field field = ShuffleDependency.class.getDeclaredField(name);
          field.setAccessible(true);
          return field.getType() == boolean.class ? field : null;
        } catch (final NoSuchFieldException | RuntimeException other) {
          LOG.debug("no field {} of a shuffle dependency", name, other);
        }
      }
      return null;
    }
  }

  /**
   * Decides for a dependency that is being made, on the thread that plans the query, and tells
   * Spark's scheduler.
   *
   * @return whether its map outputs are to report checksums
   */
  public static boolean enable(final ShuffleDependency<?, ?, ?> dependency) {
    final boolean retry = isOn(FULL_RETRY);
    if (!retry && !isOn(ENABLED)) {
      return false;
    }
    final Field fullRetry = Fields.FULL_RETRY;
    if (fullRetry == null) {
      say(
          SparkCode.CHECKSUMS_NOT_IN_SPARK
              .says(
                  "this version of Spark cannot take row checksums of RAPIDS' shuffles, so the key"
                      + " has no effect on them")
              .at(retry ? FULL_RETRY : ENABLED)
              .remedy("use Spark 4.1 or 4.2"));
      return false;
    }
    return !retry || set(dependency, fullRetry);
  }

  private static boolean set(final ShuffleDependency<?, ?, ?> dependency, final Field fullRetry) {
    try {
      if (isOn(QUERY_ROLLBACK) && Fields.QUERY_ROLLBACK != null) {
        Fields.QUERY_ROLLBACK.setBoolean(dependency, true);
      }
      fullRetry.setBoolean(dependency, true);
      return true;
    } catch (final IllegalAccessException e) {
      say(
          SparkCode.CHECKSUMS_NOT_SETTABLE
              .says("this Java does not let Zerohop tell Spark of row checksums, so there are none")
              .because(e));
      return false;
    }
  }

  /** The session's value, or Spark's default; false where Spark does not know the key. */
  private static boolean isOn(final String key) {
    try {
      return Boolean.parseBoolean(SQLConf.get().getConfString(key).trim());
    } catch (final NoSuchElementException before41) {
      return false;
    }
  }

  /** Once; every shuffle would say the same. */
  private static void say(final Message message) {
    if (SAID.add(message.code())) {
      message.warn(LOG);
    }
  }
}
