package io.zerohop.spark.rapids.setup;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** What needs RAPIDS' classes is seen on GPUs. */
class KudoRuleTest {
  private static final StructType MEMBERLESS = new StructType(new StructField[0]);

  private static StructType struct(final DataType... members) {
    StructType struct = MEMBERLESS;
    for (final DataType member : members) {
      struct = struct.add("m" + struct.fields().length, member);
    }
    return struct;
  }

  @Test
  void typesWithBytesOfTheirOwnAreKnown() {
    final DataType[] known = {
      DataTypes.BooleanType,
      DataTypes.ByteType,
      DataTypes.StringType,
      DataTypes.BinaryType,
      DataTypes.TimestampNTZType,
      DataTypes.createDecimalType(38, 6),
      DataTypes.createArrayType(struct(DataTypes.LongType, DataTypes.StringType)),
      DataTypes.createMapType(DataTypes.StringType, DataTypes.DoubleType),
    };
    for (final DataType type : known) {
      assertThat(KudoRule.isKnown(type)).as("%s", type).isTrue();
    }
  }

  @Test
  void structsWithoutMembersAndOddTypesAreNotWhereverTheyAre() {
    final DataType[] unknown = {
      MEMBERLESS,
      struct(DataTypes.LongType, MEMBERLESS),
      DataTypes.createArrayType(MEMBERLESS),
      DataTypes.createMapType(DataTypes.StringType, DataTypes.createArrayType(MEMBERLESS)),
      DataTypes.NullType,
      DataTypes.CalendarIntervalType,
      struct(DataTypes.NullType),
    };
    for (final DataType type : unknown) {
      assertThat(KudoRule.isKnown(type)).as("%s", type).isFalse();
    }
  }
}
