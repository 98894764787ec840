package io.zerohop.spark.faults

import io.zerohop.device.host.AvailableMemory
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, RunBy}

/**
 * Pools at `auto` on this very machine, most of which Spark's own settings promise to others. Spark
 * takes off-heap memory only as tasks need it, so what is promised is free all the time.
 */
@RunBy.Faults
class AutoPoolSuite extends ClusterSuite {
  private val MiB = 1L << 20
  private val Heap = 512 * MiB
  private val Python = 512 * MiB

  private lazy val machine =
    math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes())

  private lazy val offHeap = math.max(64 * MiB, machine / executors - 3072 * MiB)

  override protected def shape: Map[String, String] = Cluster.Plain

  override protected def settings: Map[String, String] = Map(
    "spark.memory.offHeap.enabled" -> "true",
    "spark.memory.offHeap.size" -> s"${offHeap}b",
    "spark.executor.pyspark.memory" -> s"${Python / MiB}m")

  test("beside off-heap and Python memory pools fit into the machine") {
    val answer = cluster.run("a shuffle beside off-heap memory") {
      Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ())
    }
    assert(answer === Workload.expected)
    if (ManagerUnderTest.isZerohop) {
      val pools = cluster.gauges("pool.host.limit.bytes")
      assert(pools.size === executors)
      assert(pools.values.sum + executors * (Heap + offHeap + Python) <= machine, pools)
      cluster.assertNothingHeld()
    }
  }
}
