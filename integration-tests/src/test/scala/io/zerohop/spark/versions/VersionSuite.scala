package io.zerohop.spark.versions

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.scalatest.funsuite.AnyFunSuite

/** The one jar starts on every supported Spark, and its executors read each other's memory. */
@RunBy.Versions
class VersionSuite extends AnyFunSuite with NeedsSparkHome {
  for (home <- SparkHomes.all) {
    test(s"an RDD and a SQL shuffle on $home") {
      requireHome(home)
      val report = VersionRuns.on(home).shuffles
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
