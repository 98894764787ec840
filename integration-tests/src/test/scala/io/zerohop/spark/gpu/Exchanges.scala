package io.zerohop.spark.gpu

import io.zerohop.spark.rapids.RapidsShuffle
import org.apache.spark.ShuffleDependency
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** The exchanges of a query that has run, and what adaptive execution made of them. */
object Exchanges extends AdaptiveSparkPlanHelper {

  def facts(frame: DataFrame): Map[String, Any] = {
    val plan = frame.queryExecution.executedPlan
    val exchanges = collect(plan) { case exchange: ShuffleExchangeLike => exchange }
    val (rapids, cpu) = exchanges.partition(_.getClass.getSimpleName.startsWith("Gpu"))
    val onGpu = rapids.count(staysOnGpu)
    Map(
      "gpu_exchanges" -> onGpu,
      "kudo_exchanges" -> rapids.count(
        _.productElement(0).getClass.getSimpleName.startsWith("Zerohop")),
      "serialised_exchanges" -> (rapids.size - onGpu),
      "cpu_exchanges" -> cpu.size) ++ adaptiveFacts(plan)
  }

  /** Whether it was handed to Zerohop as batches in GPU memory. */
  private def staysOnGpu(exchange: SparkPlan): Boolean =
    exchange.getClass.getMethod("shuffleDependencyColumnar").invoke(exchange) match {
      case dependency: ShuffleDependency[_, _, _] => RapidsShuffle.isGpuShuffle(dependency)
      case other => throw new IllegalStateException(s"$exchange has as dependency $other")
    }

  private def adaptiveFacts(plan: SparkPlan): Map[String, Any] = {
    val reads = collect(plan) {
      case read if read.getClass.getSimpleName.contains("Shuffle") =>
        specs(read)
    }
    val parts = reads.flatten
    Map(
      "reduce_tasks" -> reads.map(_.size).maxOption.getOrElse(0),
      "skewed" -> parts.exists(_.isInstanceOf[PartialReducerPartitionSpec]),
      "coalesced" -> parts.exists {
        case CoalescedPartitionSpec(first, end, _) => end - first > 1
        case _ => false
      })
  }

  /** Spark's AQEShuffleReadExec and RAPIDS' GpuCustomShuffleReaderExec have them by one name. */
  private def specs(plan: SparkPlan): Seq[Any] =
    plan.getClass.getMethods.find(_.getName == "partitionSpecs") match {
      case Some(method) => method.invoke(plan).asInstanceOf[Seq[Any]]
      case None => Seq.empty
    }
}
