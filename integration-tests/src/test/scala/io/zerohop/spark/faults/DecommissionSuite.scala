package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.Bounded
import org.apache.spark.zerohop.SparkInternals

/** An executor that leaves in good order hands its blocks over, and no map task runs again. */
class DecommissionSuite extends ClusterSuite {
  override protected def executors: Int = 3

  override protected def settings: Map[String, String] = Map(
    "spark.decommission.enabled" -> "true",
    "spark.storage.decommission.enabled" -> "true",
    "spark.storage.decommission.shuffleBlocks.enabled" -> "true",
    "spark.storage.decommission.replicationReattemptInterval" -> "1s",
    "spark.executor.decommission.killInterval" -> "60s")

  test("blocks migrate, and are read from where they are now") {
    Soak.repeat("decommission with migration") { run =>
      cluster.awaitExecutors()
      val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
      val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
      val owners = SparkInternals.mapOutputOwners(id)
      assert(owners.size === Workload.Maps)
      val leaving = owners.distinct.sorted.apply(run % owners.distinct.size)
      assert(SparkInternals.decommission(cluster.sc, leaving))
      Bounded.until(s"executor $leaving gone", 90.seconds) {
        !SparkInternals.executorIds(cluster.sc).contains(leaving)
      }
      assert(SparkInternals.mapOutputOwners(id).size === Workload.Maps)
      val (answer, bytes) = cluster.counted("read after migration") {
        Workload.answer(shuffled)((_, _) => ())
      }
      assert(answer === Workload.expected)
      assert(bytes.finishedMapTasks === 0, "map tasks ran again")
      assert(bytes.failedTasks === 0)
      if (ManagerUnderTest.isZerohop) assert(bytes.bytes("staged") > 0)
      SparkInternals.removeShuffle(cluster.sc, id)
      assert(SparkInternals.requestExecutors(cluster.sc, executors))
      bytes.failedTasks
    }
  }
}
