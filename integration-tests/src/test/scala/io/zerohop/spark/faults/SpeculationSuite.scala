package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.apache.spark.TaskContext
import org.apache.spark.deploy.zerohop.TwoHosts

/** Two attempts of one task run at a time; whichever wins, every record counts once. */
@RunBy.Faults
class SpeculationSuite extends ClusterSuite {
  import SpeculationSuite._

  private lazy val hosts = new TwoHosts(1024)

  override protected def master: Option[String] = Some(hosts.url)

  override protected def settings: Map[String, String] = Map(
    "spark.speculation" -> "true",
    "spark.speculation.interval" -> "100ms",
    "spark.speculation.minTaskRuntime" -> "300ms",
    "spark.speculation.quantile" -> "0.5")

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally hosts.close()

  test("speculative attempts of map and of reduce tasks") {
    Soak.repeat("speculative attempts") { run =>
      val (answer, bytes) = cluster.counted(s"speculation, run $run") {
        val shuffled = Workload.shuffled(cluster.sc) { (map, record) =>
          if (map == 7 && record == 100) lag()
        }
        Workload.answer(shuffled) { (partition, record) =>
          if (partition == 7 && record == 100) lag()
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
  }

  test("an executor is killed while two attempts run") {
    Soak.repeat("executor killed with speculation", Soak.longRuns) { run =>
      val fault = Fault.in(folder)
      cluster.awaitExecutors()
      val (answer, bytes) = cluster.counted(s"killed with speculation, run $run") {
        val (inWrite, ofCopy) = (run % 2 == 0, run % 4 < 2)
        val shuffled = Workload.shuffled(cluster.sc) { (map, record) =>
          if (inWrite && map == 7 && record == 100) strike(fault, ofCopy)
        }
        Workload.answer(shuffled) { (partition, record) =>
          if (!inWrite && partition == 7 && record == 100) strike(fault, ofCopy)
        }
      }
      Soak.killed(fault.killed)
      assert(fault.killed === 1)
      assert(answer === Workload.expected)
      assert(bytes.speculativeTasks > 0)
      cluster.awaitExecutors()
      if (ManagerUnderTest.isZerohop) cluster.assertNothingHeldOfTheDead()
      bytes.failedTasks
    }
  }
}

private object SpeculationSuite {
  private val LagMillis = 15000

  /** Slows the first attempt of a task down; the speculative one is the second. */
  def lag(): Unit = if (isFirst) Thread.sleep(LagMillis)

  /** Kills the executor of the speculative attempt, or that of the first, which waits for it. */
  def strike(fault: Fault, ofCopy: Boolean): Unit =
    if (!isFirst) {
      if (ofCopy) fault.killSelf() else fault.killOthers()
    } else {
      val end = System.currentTimeMillis + LagMillis
      while (fault.killed == 0 && System.currentTimeMillis < end) Thread.sleep(20)
    }

  private def isFirst: Boolean = TaskContext.get().attemptNumber() == 0
}
