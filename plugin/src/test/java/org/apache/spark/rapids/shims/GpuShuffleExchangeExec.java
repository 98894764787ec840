package org.apache.spark.rapids.shims;

import com.nvidia.spark.rapids.GpuExec;
import io.zerohop.spark.rapids.setup.PlanNode;
import org.apache.spark.sql.execution.SparkPlan;

/** Stands for RAPIDS' exchange. */
public final class GpuShuffleExchangeExec extends PlanNode implements GpuExec {
  public GpuShuffleExchangeExec(final SparkPlan... child) {
    super(child);
  }

  @Override
  protected SparkPlan again(final SparkPlan... replaced) {
    return new GpuShuffleExchangeExec(replaced);
  }
}
