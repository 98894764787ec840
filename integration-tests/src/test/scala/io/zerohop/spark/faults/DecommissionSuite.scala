package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.spark.zerohop.SparkInternals

/** An executor that leaves in good order hands its blocks over, and no map task runs again. */
@RunBy.Faults
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

  test("an executor is killed while one is decommissioned") {
    Soak.repeat("executor killed with a decommission", Soak.longRuns) { run =>
      cluster.awaitExecutors()
      val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
      val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
      val owners = SparkInternals.mapOutputOwners(id).distinct.sortBy(_.toInt)
      val leaving = owners(run % owners.size)
      // In every third run the one that leaves.
      val victim = owners((run + run % 3) % owners.size)
      val (answer, bytes) = cluster.counted("read with one leaving and one dead") {
        assert(SparkInternals.decommission(cluster.sc, leaving))
        cluster.kill(victim)
        Soak.killed(1)
        Workload.answer(shuffled)((_, _) => ())
      }
      assert(answer === Workload.expected)
      Bounded.until(s"executor $leaving gone", 90.seconds) {
        !SparkInternals.executorIds(cluster.sc).contains(leaving)
      }
      assert(SparkInternals.requestExecutors(cluster.sc, executors))
      cluster.awaitExecutors()
      if (ManagerUnderTest.isZerohop) cluster.assertNothingHeldOfTheDead()
      else SparkInternals.removeShuffle(cluster.sc, id)
      bytes.failedTasks
    }
  }
}
