package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.Cluster
import org.apache.spark.TaskContext
import org.apache.spark.deploy.zerohop.TwoHosts
import org.scalatest.funsuite.AnyFunSuite

/** Two attempts of one task run at a time; whichever wins, every record counts once. */
class SpeculationSuite extends AnyFunSuite {
  private val settings = Map(
    "spark.speculation" -> "true",
    "spark.speculation.interval" -> "100ms",
    "spark.speculation.minTaskRuntime" -> "300ms",
    "spark.speculation.quantile" -> "0.5")

  test("speculative attempts of map and of reduce tasks") {
    val hosts = new TwoHosts(1024)
    try {
      val cluster = new Cluster(2, settings, Some(hosts.url))
      try {
        Soak.repeat("speculative attempts") { run =>
          val (answer, bytes) = cluster.counted(s"speculation, run $run") {
            val shuffled = Workload.shuffled(cluster.sc) { (map, record) =>
              if (map == 7 && record == 100) SpeculationSuite.lag()
            }
            Workload.answer(shuffled) { (partition, record) =>
              if (partition == 7 && record == 100) SpeculationSuite.lag()
            }
          }
          assert(answer === Workload.expected)
          assert(bytes.speculativeTasks > 0)
          if (ManagerUnderTest.isZerohop) {
            assert(bytes.bytes("peer") > 0)
            cluster.assertNothingHeld()
          }
          bytes.failedTasks
        }
      } finally cluster.close()
    } finally hosts.close()
  }
}

private object SpeculationSuite {
  /** Slows the first attempt of a task down; the speculative one is the second. */
  def lag(): Unit = if (TaskContext.get().attemptNumber() == 0) Thread.sleep(8000)
}
