package io.zerohop.spark.rows;

import org.apache.spark.ShuffleDependency;
import org.apache.spark.shuffle.checksum.RowBasedChecksum;

/**
 * Spark's order-independent checksum over a map task's records (Spark 4.1 and later). By it the
 * driver detects that a retried map task produced other rows. A manager that reports 0 turns that
 * protection off, so every record goes through here.
 *
 * <p>Not thread safe: one per map task.
 */
abstract class RowChecksums {
  private static final RowChecksums NONE =
      new RowChecksums() {
        @Override
        void update(final int partition, final Object key, final Object value) {}

        @Override
        long value() {
          return 0;
        }

        @Override
        boolean active() {
          return false;
        }
      };

  /**
   * The checksums that the dependency asks for; inactive before Spark 4.1 and where it asks none.
   */
  static RowChecksums of(final ShuffleDependency<?, ?, ?> dependency) {
    return Support.PRESENT ? Since41.of(dependency) : NONE;
  }

  abstract void update(int partition, Object key, Object value);

  /** The value for the map status. */
  abstract long value();

  abstract boolean active();

  private static final class Support {
    static final boolean PRESENT = present();

    private static boolean present() {
      try {
        ShuffleDependency.class.getMethod("rowBasedChecksums");
        return true;
      } catch (final NoSuchMethodException before41) {
        return false;
      }
    }
  }

  /** Linked only where the method exists. */
  private static final class Since41 extends RowChecksums {
    private final RowBasedChecksum[] checksums;

    private Since41(final RowBasedChecksum[] checksums) {
      this.checksums = checksums;
    }

    static RowChecksums of(final ShuffleDependency<?, ?, ?> dependency) {
      final RowBasedChecksum[] checksums = dependency.rowBasedChecksums();
      return checksums == null || checksums.length == 0 ? NONE : new Since41(checksums);
    }

    @Override
    void update(final int partition, final Object key, final Object value) {
      checksums[partition].update(key, value);
    }

    @Override
    long value() {
      return RowBasedChecksum.getAggregatedChecksumValue(checksums);
    }

    @Override
    boolean active() {
      return true;
    }
  }
}
