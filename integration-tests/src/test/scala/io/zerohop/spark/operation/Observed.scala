package io.zerohop.spark.operation

import java.nio.file.{Path, Paths}

import org.apache.spark.{SparkConf, SparkContext}

/** An application that is watched by the files of docs/metrics.md. */
object Observed {
  val files: Path = Paths.get(sys.props("zerohop.test.repository"), "docs", "grafana")

  /**
   * Starts one. Its master is local, so that its one process has both the metrics and the servlet.
   */
  def start(poolSize: String): SparkContext =
    new SparkContext(
      new SparkConf()
        .setMaster("local[2]")
        .setAppName("zerohop-dashboard")
        .set("spark.ui.enabled", "true")
        .set("spark.ui.port", "0")
        .set("spark.zerohop.pool.size", poolSize)
        .set("spark.metrics.conf", files.resolve("metrics.properties").toString))
}
