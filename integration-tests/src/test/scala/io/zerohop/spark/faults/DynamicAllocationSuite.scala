package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.spark.zerohop.SparkInternals

/** Executors come and go with the load; Spark tracks which hold shuffles that are still of use. */
@RunBy.Faults
class DynamicAllocationSuite extends ClusterSuite {
  override protected def settings: Map[String, String] = Map(
    "spark.dynamicAllocation.enabled" -> "true",
    "spark.dynamicAllocation.shuffleTracking.enabled" -> "true",
    "spark.dynamicAllocation.initialExecutors" -> executors.toString,
    "spark.dynamicAllocation.maxExecutors" -> executors.toString,
    "spark.dynamicAllocation.executorIdleTimeout" -> "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout" -> "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout" -> "20s")

  // On a busy machine the first is let go before the second is there, and they never are two.
  override protected def await: Boolean = false

  test(
    "executors with shuffles stay, go when that takes too long, and what they had is made anew") {
    val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
    val shuffle = cluster.run("the map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
    // Not of an executor that came when all tasks had begun.
    val holders = SparkInternals.mapOutputOwners(shuffle).toSet
    assert(holders.nonEmpty)
    Thread.sleep(5.seconds.toMillis) // Longer than an executor without shuffles may idle.
    assert(holders.subsetOf(SparkInternals.executorIds(cluster.sc).toSet))
    val (first, kept) = cluster.counted("read while they are there") {
      Workload.answer(shuffled)((_, _) => ())
    }
    assert(first === Workload.expected)
    assert(kept.finishedMapTasks === 0)
    Bounded.until("executors were let go", 60.seconds) {
      SparkInternals.executorIds(cluster.sc).isEmpty
    }
    val (second, made) = cluster.counted("read when they are gone") {
      Workload.answer(shuffled)((_, _) => ())
    }
    assert(second === Workload.expected)
    assert(made.finishedMapTasks === Workload.Maps)
  }

  test("an executor is killed of those that came with the load") {
    Soak.repeat("executor killed with dynamic allocation", Soak.longRuns) { run =>
      awaitAllExecutors()
      val fault = Fault.in(folder)
      val (answer, bytes) = cluster.counted(s"killed with dynamic allocation, run $run") {
        val shuffled = Workload.shuffled(cluster.sc) { (map, record) =>
          if (run % 3 == 0 && map == 5 && record == 100) fault.killSelf()
        }
        Workload.answer(shuffled) { (partition, record) =>
          if (partition == 5 && record == 100) {
            if (run % 3 == 1) fault.killOthers() else if (run % 3 == 2) fault.killSelf()
          }
        }
      }
      Soak.killed(fault.killed)
      assert(fault.killed === 1)
      assert(answer === Workload.expected)
      if (ManagerUnderTest.isZerohop) cluster.assertNothingHeldOfTheDead(anyGone = true)
      bytes.failedTasks
    }
  }

  /** Gives them load until Spark has asked for all of them; they go again when they idle. */
  private def awaitAllExecutors(): Unit =
    Bounded.until(s"$executors executors for the load", 90.seconds) {
      cluster.run("load") {
        val tasks = executors * 8
        cluster.sc.parallelize(0 until tasks, tasks).foreach(_ => Thread.sleep(200))
      }
      cluster.pids.size == executors
    }
}
