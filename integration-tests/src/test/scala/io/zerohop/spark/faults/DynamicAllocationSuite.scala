package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.support.Bounded
import org.apache.spark.zerohop.SparkInternals

/** Executors come and go with the load; Spark tracks which hold shuffles that are still of use. */
class DynamicAllocationSuite extends ClusterSuite {
  override protected def settings: Map[String, String] = Map(
    "spark.dynamicAllocation.enabled" -> "true",
    "spark.dynamicAllocation.shuffleTracking.enabled" -> "true",
    "spark.dynamicAllocation.initialExecutors" -> executors.toString,
    "spark.dynamicAllocation.maxExecutors" -> executors.toString,
    "spark.dynamicAllocation.executorIdleTimeout" -> "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout" -> "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout" -> "20s")

  test("executors with shuffles stay, go when that takes too long, and what they had is made anew") {
    val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
    cluster.run("the map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
    val holders = SparkInternals.executorIds(cluster.sc).toSet
    assert(holders.nonEmpty)
    Thread.sleep(5.seconds.toMillis) // Longer than an executor without shuffles may idle.
    assert(SparkInternals.executorIds(cluster.sc).toSet === holders)
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
}
