package io.zerohop.spark.rows;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.rows.RowsReader.UnsafeRows;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.junit.jupiter.api.Test;

class UnsafeRowsTest {

  @Test
  void knowsTheSerializersFieldsAndItsMetric() {
    final SQLMetric dataSize = new SQLMetric("size", 0L);
    final UnsafeRows rows = UnsafeRows.of(new UnsafeRowSerializer(7, dataSize));
    assertThat(rows).isNotNull();
    assertThat(rows.numFields()).isEqualTo(7);
    rows.addDataSize(41);
    rows.addDataSize(1);
    assertThat(dataSize.value()).isEqualTo(42L);
  }

  @Test
  void worksWithoutTheMetric() {
    final UnsafeRows rows = UnsafeRows.of(new UnsafeRowSerializer(1, null));
    assertThat(rows).isNotNull();
    rows.addDataSize(5);
    assertThat(rows.dataSize()).isNull();
  }

  @Test
  void leavesOtherSerializersAlone() {
    assertThat(UnsafeRows.of(new JavaSerializer(new SparkConf(false)))).isNull();
  }
}
