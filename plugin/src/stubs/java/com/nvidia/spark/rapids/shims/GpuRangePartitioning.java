package com.nvidia.spark.rapids.shims;

import com.nvidia.spark.rapids.ShimLoader;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** As {@link ShimLoader}. */
public class GpuRangePartitioning extends Expression {
  public GpuRangePartitioning(final Seq<SortOrder> ordering, final int partitions) {
    throw new AssertionError("a stand-in for the compiler");
  }

  public Seq<SortOrder> gpuOrdering() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public boolean usesGPUShuffle() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public int numPartitions() {
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
