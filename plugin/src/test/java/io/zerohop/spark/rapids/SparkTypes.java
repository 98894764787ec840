package io.zerohop.spark.rapids;

import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;

/** What Spark calls the kinds of columns that tests use. */
final class SparkTypes {
  private SparkTypes() {}

  static DataType[] of(final List<Kind> kinds) {
    return kinds.stream().map(SparkTypes::of).toArray(DataType[]::new);
  }

  private static DataType of(final Kind kind) {
    return switch (kind) {
      case INT -> DataTypes.IntegerType;
      case LONG -> DataTypes.LongType;
      case DOUBLE -> DataTypes.DoubleType;
      case BOOLEAN -> DataTypes.BooleanType;
      case STRING -> DataTypes.StringType;
      case INTS -> DataTypes.createArrayType(DataTypes.IntegerType);
      case STRINGS -> DataTypes.createArrayType(DataTypes.StringType);
      case STRUCT ->
          DataTypes.createStructType(
              new StructField[] {
                DataTypes.createStructField("number", DataTypes.LongType, true),
                DataTypes.createStructField("text", DataTypes.StringType, true)
              });
    };
  }
}
