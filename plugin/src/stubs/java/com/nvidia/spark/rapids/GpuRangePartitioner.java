package com.nvidia.spark.rapids;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** As {@link ShimLoader}. */
public class GpuRangePartitioner extends Expression implements GpuExpression {
  public GpuRangePartitioner(final InternalRow[] bounds, final GpuSorter sorter) {
    throw new AssertionError("a stand-in for the compiler");
  }

  public static InternalRow[] createRangeBounds(
      final int partitions,
      final GpuSorter sorter,
      final RDD<ColumnarBatch> rows,
      final int sampleSizePerPartition) {
    throw new AssertionError("a stand-in for the compiler");
  }

  public InternalRow[] rangeBounds() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public GpuSorter sorter() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public boolean usesGPUShuffle() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public boolean usesKudoGPUSlicing() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public int numPartitions() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public Tuple2<ColumnarBatch, Object>[] sliceInternalGpuOrCpuAndClose(
      final int rows, final int[] starts, final GpuColumnVector[] columns) {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public boolean nullable() {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public Object eval(final InternalRow row) {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public ExprCode doGenCode(final CodegenContext context, final ExprCode code) {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public DataType dataType() {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public Seq<Expression> children() {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public Expression withNewChildrenInternal(final IndexedSeq<Expression> children) {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public boolean canEqual(final Object other) {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public int productArity() {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public Object productElement(final int index) {
    throw new AssertionError("a stand-in for the compiler");
  }
}
