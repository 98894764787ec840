package com.nvidia.spark.rapids;

import ai.rapids.cudf.DType;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** As RAPIDS': a column of cudf's for Spark. */
public final class GpuColumnVector extends GpuColumnVectorBase {
  private final ai.rapids.cudf.ColumnVector base;

  private GpuColumnVector(final DataType type, final ai.rapids.cudf.ColumnVector base) {
    super(type);
    this.base = base;
  }

  /** A batch with references of its own on the table's columns. */
  public static ColumnarBatch from(final Table table, final DataType[] types) {
    final ColumnVector[] columns = new ColumnVector[table.getNumberOfColumns()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new GpuColumnVector(types[i], table.getColumn(i).incRefCount());
    }
    return new ColumnarBatch(columns, (int) table.getRowCount());
  }

  public static Schema from(final DataType[] types) {
    final Schema.Builder schema = Schema.builder();
    for (int i = 0; i < types.length; i++) {
      add(schema, types[i], "c" + i);
    }
    return schema.build();
  }

  private static void add(final Schema.Builder to, final DataType type, final String name) {
    if (type instanceof ArrayType array) {
      add(to.addColumn(DType.LIST, name), array.elementType(), "item");
    } else if (type instanceof StructType struct) {
      final Schema.Builder members = to.addColumn(DType.STRUCT, name);
      for (final StructField field : struct.fields()) {
        add(members, field.dataType(), field.name());
      }
    } else {
      to.addColumn(plain(type), name);
    }
  }

  private static DType plain(final DataType type) {
    if (type.equals(DataTypes.IntegerType)) {
      return DType.INT32;
    } else if (type.equals(DataTypes.LongType)) {
      return DType.INT64;
    } else if (type.equals(DataTypes.DoubleType)) {
      return DType.FLOAT64;
    } else if (type.equals(DataTypes.BooleanType)) {
      return DType.BOOL8;
    } else if (type.equals(DataTypes.ShortType)) {
      return DType.INT16;
    } else if (type.equals(DataTypes.ByteType)) {
      return DType.INT8;
    }
    return DType.STRING;
  }

  public ai.rapids.cudf.ColumnVector getBase() {
    return base;
  }

  @Override
  public void close() {
    base.close();
  }
}
