package io.zerohop.gpu;

import io.zerohop.workload.ScalaLists;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;

/**
 * How many shuffles a plan has on either side, by which it shows whether the GPU did the work. One
 * that is used twice counts once.
 *
 * @param gpu shuffles of RAPIDS' batches
 * @param cpu shuffles of Spark's rows
 */
record ExchangeCount(int gpu, int cpu) {
  private static final String GPU = "GpuShuffleExchangeExec";
  private static final String CPU = "ShuffleExchangeExec";

  /** Counts in a plan that has run, adaptive or not, and in its subqueries. */
  static ExchangeCount of(final SparkPlan plan) {
    // Adaptive execution hides what it has decided from those who only follow the children.
    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      return of(adaptive.executedPlan());
    }
    if (plan instanceof QueryStageExec stage) {
      return of(stage.plan());
    }
    final String name = plan.getClass().getSimpleName();
    ExchangeCount sum = new ExchangeCount(name.equals(GPU) ? 1 : 0, name.equals(CPU) ? 1 : 0);
    for (final SparkPlan child : ScalaLists.get(SparkPlan.class, plan, "children")) {
      sum = sum.plus(of(child));
    }
    for (final SparkPlan subquery : ScalaLists.get(SparkPlan.class, plan, "subqueries")) {
      sum = sum.plus(of(subquery));
    }
    return sum;
  }

  private ExchangeCount plus(final ExchangeCount other) {
    return new ExchangeCount(gpu + other.gpu, cpu + other.cpu);
  }
}
