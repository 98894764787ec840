package io.zerohop.spark.gpu

import io.zerohop.spark.support.{Cluster, ScenarioServer}
import org.apache.spark.SparkConf

/** The driver program of the tests on GPUs; each question is the name of a scenario. */
object GpuTestApp {

  /** @param args folder for what a hung wait leaves behind, and the number of executors */
  def main(args: Array[String]): Unit = {
    System.setProperty("zerohop.test.target", args(0))
    val conf = new SparkConf
    val cluster = new Cluster(args(1).toInt, conf.getAll.toMap, Some(conf.get("spark.master")))
    val scenarios = new FaultScenarios(cluster).all ++ new QueryScenarios(cluster).all
    ScenarioServer.serve(scenarios(_)())
  }
}
