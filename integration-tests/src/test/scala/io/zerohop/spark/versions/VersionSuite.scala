package io.zerohop.spark.versions

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.scalatest.funsuite.AnyFunSuite

/** The one jar starts on every supported Spark, and its executors read each other's memory. */
@RunBy.Versions
class VersionSuite extends AnyFunSuite with NeedsSparkHome {
  private val conf = Map(
    "spark.master" -> "local-cluster[2,1,1024]",
    "spark.executor.memory" -> "512m",
    "spark.shuffle.manager" -> ManagerUnderTest.name,
    "spark.zerohop.pool.size" -> "128m",
    "spark.sql.shuffle.partitions" -> "4")

  for (home <- SparkHomes.all) {
    test(s"an RDD and a SQL shuffle on $home") {
      requireHome(home)
      val ended = SparkSubmitProcess.run(home, conf, classOf[ShuffleApp].getName, AppJar.path)
      assert(ended.exit === 0, s"see ${ended.log}")
      val report = AppJar.report(ended.stdout, "shuffle-app:")
      assert(report("version") === home.version)
      assert(report("rdd") === "199990000")
      assert(report("groups") === "1000")
      assert(report("sum") === "4999950000")
      if (ManagerUnderTest.isZerohop) {
        assert(report("zerohop.peer.bytes").toLong > 0)
        assert(report.getOrElse("zerohop.staged.bytes", "0") === "0")
      }
    }
  }
}
