package io.zerohop.spark.rows;

import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import java.lang.reflect.Field;
import java.nio.ByteOrder;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.util.AccumulatorV2;
import org.jspecify.annotations.Nullable;

/**
 * Reads from Spark's UnsafeRowSerializer what the fast path for SQL rows needs: the number of
 * fields, and the "data size" metric, which adaptive execution plans with. Both are private there;
 * if a Spark version hides them elsewhere, the fast path is not taken and the serializer itself is
 * used.
 *
 * @param numFields fields of each row
 * @param dataSize the metric, if there is one
 */
record UnsafeRows(int numFields, @Nullable AccumulatorV2<?, ?> dataSize) {
  private static final String SERIALIZER = "org.apache.spark.sql.execution.UnsafeRowSerializer";
  private static final boolean LITTLE_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

  /** The fast path for this serializer, or null if it is another one or not as we know it. */
  static @Nullable UnsafeRows of(final Serializer serializer) {
    if (!SERIALIZER.equals(serializer.getClass().getName())
        || !SparkProbe.here().has(SparkFeature.SQL_ROWS)) {
      return null;
    }
    try {
      final Field fields = serializer.getClass().getDeclaredField("numFields");
      final Field metric = serializer.getClass().getDeclaredField("dataSize");
      fields.setAccessible(true);
      metric.setAccessible(true);
      return new UnsafeRows(
          fields.getInt(serializer), (AccumulatorV2<?, ?>) metric.get(serializer));
    } catch (final ReflectiveOperationException | RuntimeException e) {
      return null;
    }
  }

  /** Adds to the metric, which is a sum. */
  @SuppressWarnings("unchecked")
  void addDataSize(final long bytes) {
    if (dataSize != null) {
      ((AccumulatorV2<Object, Object>) dataSize).add(bytes);
    }
  }

  /** Converts between the machine's order and the stream's. */
  static int bigEndian(final int value) {
    return LITTLE_ENDIAN ? Integer.reverseBytes(value) : value;
  }
}
