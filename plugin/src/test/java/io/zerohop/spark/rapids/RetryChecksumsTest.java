package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import org.agrona.UnsafeAccess;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What Spark's scheduler is told, by a dependency of the Spark that this is built with. */
class RetryChecksumsTest {
  private static final DataType[] TYPES = {DataTypes.LongType, DataTypes.StringType};

  private final ShuffleDependency<?, ?, ?> dependency = dependency();

  /** As a dependency is when it registers its shuffle: only its fields are there. */
  private static ShuffleDependency<?, ?, ?> dependency() {
    try {
      return (ShuffleDependency<?, ?, ?>)
          UnsafeAccess.UNSAFE.allocateInstance(ShuffleDependency.class);
    } catch (final InstantiationException e) {
      throw new AssertionError(e);
    }
  }

  private static void set(final String key, final boolean value) {
    SQLConf.get().setConfString(key, Boolean.toString(value));
  }

  @AfterEach
  void forget() {
    SQLConf.get().unsetConf(RetryChecksums.ENABLED);
    SQLConf.get().unsetConf(RetryChecksums.FULL_RETRY);
  }

  @Test
  void nothingIsDoneWithoutTheKeys() {
    set(RetryChecksums.ENABLED, false);
    set(RetryChecksums.FULL_RETRY, false);
    assertThat(RetryChecksums.enable(dependency, TYPES)).isFalse();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isFalse();
  }

  @Test
  void theDefaultIsSparks() {
    final boolean on = SQLConf.get().shuffleChecksumMismatchFullRetryEnabled();
    assertThat(RetryChecksums.enable(dependency, TYPES)).isEqualTo(on);
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isEqualTo(on);
  }

  @Test
  void theSchedulerIsToldToActOnChecksums() {
    set(RetryChecksums.FULL_RETRY, true);
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isFalse();
    assertThat(RetryChecksums.enable(dependency, TYPES)).isTrue();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isTrue();
  }

  @Test
  void checksumsAloneAreReportedAndNotActedOn() {
    set(RetryChecksums.ENABLED, true);
    set(RetryChecksums.FULL_RETRY, false);
    assertThat(RetryChecksums.enable(dependency, TYPES)).isTrue();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isFalse();
  }

  @Test
  void rowsThatCannotBeHashedCountAsChanged() {
    set(RetryChecksums.FULL_RETRY, true);
    final DataType[] types = {DataTypes.LongType, DataTypes.CalendarIntervalType};
    assertThat(RetryChecksums.enable(dependency, types)).isTrue();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isTrue();
  }

  @Test
  void rowsThatCannotBeHashedReportNothingWhereNobodyActsOnIt() {
    set(RetryChecksums.ENABLED, true);
    set(RetryChecksums.FULL_RETRY, false);
    final DataType[] types = {DataTypes.LongType, DataTypes.CalendarIntervalType};
    assertThat(RetryChecksums.enable(dependency, types)).isFalse();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isFalse();
  }

  @Test
  void theTypesOfRapidsAreKnownUpToADepth() {
    final DataType map = DataTypes.createMapType(DataTypes.StringType, DataTypes.BinaryType);
    final DataType struct =
        DataTypes.createStructType(
            new StructField[] {
              DataTypes.createStructField("a", DataTypes.createDecimalType(38, 4), true),
              DataTypes.createStructField("b", map, true)
            });
    assertThat(
            HashableTypes.all(
                new DataType[] {
                  DataTypes.BooleanType,
                  DataTypes.ByteType,
                  DataTypes.ShortType,
                  DataTypes.IntegerType,
                  DataTypes.FloatType,
                  DataTypes.DoubleType,
                  DataTypes.DateType,
                  DataTypes.TimestampType,
                  DataTypes.TimestampNTZType,
                  DataTypes.NullType,
                  DataTypes.createDayTimeIntervalType(),
                  DataTypes.createYearMonthIntervalType(),
                  struct
                }))
        .isTrue();
    assertThat(HashableTypes.all(new DataType[] {nested(16)})).isTrue();
    assertThat(HashableTypes.all(new DataType[] {nested(17)})).isFalse();
    final DataType[] wide = new DataType[4_097];
    java.util.Arrays.fill(wide, DataTypes.LongType);
    assertThat(HashableTypes.all(wide)).isFalse();
    assertThat(HashableTypes.all(java.util.Arrays.copyOf(wide, 4_096))).isTrue();
  }

  private static DataType nested(final int depth) {
    DataType type = DataTypes.LongType;
    for (int i = 0; i < depth; i++) {
      type = ArrayType.apply(type);
    }
    return type;
  }
}
