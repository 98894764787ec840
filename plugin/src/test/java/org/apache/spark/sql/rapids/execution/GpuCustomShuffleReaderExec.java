package org.apache.spark.sql.rapids.execution;

import io.zerohop.spark.rapids.setup.PlanNode;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;

/** Stands for RAPIDS' read of a shuffle in an adaptive plan. */
public final class GpuCustomShuffleReaderExec extends PlanNode {
  private final SparkPlan stage;
  private final Seq<?> specs;

  public GpuCustomShuffleReaderExec(final SparkPlan stage, final Seq<?> specs) {
    super(stage);
    this.stage = stage;
    this.specs = specs;
  }

  /** What each of its tasks reads. */
  public Seq<?> specs() {
    return specs;
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(final int index) {
    return index == 0 ? stage : specs;
  }

  @Override
  public SparkPlan makeCopy(final Object[] arguments) {
    return new GpuCustomShuffleReaderExec((SparkPlan) arguments[0], (Seq<?>) arguments[1]);
  }
}
