package io.zerohop.spark.gpu

import io.zerohop.spark.support.{Cluster, ScenarioServer}
import org.apache.spark.SparkConf

/** The driver program of the tests on GPUs; each question is the name of a scenario. */
object GpuTestApp {

  /** Rows of a query with a fault on a cluster whose hosts may be anything. */
  private val RowsElsewhere = 240000L

  /**
   * @param args folder for what a hung wait leaves behind, and the number of executors; then
   *   `elsewhere` if these run on a cluster of somebody's own, with nothing set but what they say
   */
  def main(args: Array[String]): Unit = {
    System.setProperty("zerohop.test.target", args(0))
    val conf = new SparkConf
    val elsewhere = args.lift(2).contains("elsewhere")
    val cluster = new Cluster(
      args(1).toInt,
      conf.getAll.toMap,
      Some(conf.get("spark.master")),
      shape = if (elsewhere) Map.empty else Cluster.Small,
      await = !conf.getBoolean("spark.dynamicAllocation.enabled", false),
      elsewhere = elsewhere)
    val faults = new FaultScenarios(cluster, if (elsewhere) RowsElsewhere else FaultyQuery.Rows)
    val scenarios =
      faults.all ++ new QueryScenarios(cluster).all ++ new ClusterScenarios(cluster).all
    ScenarioServer.serve(scenarios(_)())
  }
}
