package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, HostProcess, RunBy}

/**
 * An executor stops for good, with leases on blocks of others. The driver gives it up and has its
 * process killed, which ends its connections and with them all that was kept for it.
 */
@RunBy.Faults
class HungExecutorSuite extends ClusterSuite {
  override protected def settings: Map[String, String] = Map(
    "spark.network.timeout" -> "8s",
    "spark.network.timeoutInterval" -> "1s",
    "spark.executor.heartbeatInterval" -> "1s")

  test("what was kept for a reader that hangs is given back once the driver has given it up") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle keeps nothing for readers")
    val fault = Fault.in(folder)
    val before = cluster.pids.values.flatMap(HostProcess.of(_)).toSeq
    val (answer, seen) = cluster.counted("a job with a reader that hangs", 180.seconds) {
      Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ())) { (partition, record) =>
        if (partition == 1 && record == 100) fault.pauseSelf(600)
      }
    }
    assert(fault.happened)
    assert(answer === Workload.expected)
    assert(seen.failedTasks > 0)
    Bounded.until("the end of the one that hangs", 60.seconds) {
      before.exists(!_.lives)
    }
    cluster.awaitExecutors()
    cluster.assertNothingHeld()
  }
}
