package com.nvidia.spark.rapids;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** As RAPIDS': a column of which nothing can be read on the host. */
abstract class GpuColumnVectorBase extends ColumnVector {
  GpuColumnVectorBase(final DataType type) {
    super(type);
  }

  private static UnsupportedOperationException onGpu() {
    return new UnsupportedOperationException("the column lies on the GPU");
  }

  @Override
  public boolean hasNull() {
    throw onGpu();
  }

  @Override
  public int numNulls() {
    throw onGpu();
  }

  @Override
  public boolean isNullAt(final int row) {
    throw onGpu();
  }

  @Override
  public boolean getBoolean(final int row) {
    throw onGpu();
  }

  @Override
  public byte getByte(final int row) {
    throw onGpu();
  }

  @Override
  public short getShort(final int row) {
    throw onGpu();
  }

  @Override
  public int getInt(final int row) {
    throw onGpu();
  }

  @Override
  public long getLong(final int row) {
    throw onGpu();
  }

  @Override
  public float getFloat(final int row) {
    throw onGpu();
  }

  @Override
  public double getDouble(final int row) {
    throw onGpu();
  }

  @Override
  public ColumnarArray getArray(final int row) {
    throw onGpu();
  }

  @Override
  public ColumnarMap getMap(final int row) {
    throw onGpu();
  }

  @Override
  public Decimal getDecimal(final int row, final int precision, final int scale) {
    throw onGpu();
  }

  @Override
  public UTF8String getUTF8String(final int row) {
    throw onGpu();
  }

  @Override
  public byte[] getBinary(final int row) {
    throw onGpu();
  }

  @Override
  public ColumnVector getChild(final int index) {
    throw onGpu();
  }
}
