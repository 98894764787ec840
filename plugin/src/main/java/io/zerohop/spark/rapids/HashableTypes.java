package io.zerohop.spark.rapids;

import io.zerohop.device.RowHashBatch;
import java.util.Set;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Whether rows of some types can be hashed as RAPIDS lays them out. It is asked once for a shuffle,
 * on the driver, which says what it means for the user if they cannot.
 */
final class HashableTypes {
  /** Values of a fixed width in cudf; by name, since not every Spark has all of them. */
  private static final Set<String> FIXED =
      Set.of(
          "BooleanType",
          "ByteType",
          "ShortType",
          "IntegerType",
          "LongType",
          "FloatType",
          "DoubleType",
          "DateType",
          "TimestampType",
          "TimestampNTZType",
          "DayTimeIntervalType",
          "YearMonthIntervalType",
          "NullType");

  private int columns;

  private HashableTypes() {}

  /** Whether all of them can. */
  static boolean all(final DataType[] types) {
    final HashableTypes walk = new HashableTypes();
    for (final DataType type : types) {
      if (!walk.visit(type, 0)) {
        return false;
      }
    }
    return walk.columns <= RowHashBatch.MOST_COLUMNS;
  }

  /** Counts what cudf has for a type, columns of offsets too. */
  private boolean visit(final DataType type, final int depth) {
    columns++;
    if (FIXED.contains(type.getClass().getSimpleName().replace("$", ""))
        || type instanceof DecimalType) {
      return true;
    }
    if (type instanceof StringType) {
      columns++;
      return true;
    }
    if (depth == RowHashBatch.MOST_DEPTH) {
      return false;
    }
    if (type instanceof BinaryType) {
      columns += 2; // A list of bytes.
      return true;
    }
    if (type instanceof ArrayType array) {
      columns++;
      return visit(array.elementType(), depth + 1);
    }
    if (type instanceof MapType map) {
      columns += 2; // A list of structs.
      return depth + 2 <= RowHashBatch.MOST_DEPTH
          && visit(map.keyType(), depth + 2)
          && visit(map.valueType(), depth + 2);
    }
    return type instanceof StructType struct && fields(struct, depth + 1);
  }

  private boolean fields(final StructType struct, final int depth) {
    for (final StructField field : struct.fields()) {
      if (!visit(field.dataType(), depth)) {
        return false;
      }
    }
    return true;
  }
}
