package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, RunBy}
import org.apache.spark.zerohop.SparkInternals

/**
 * An executor stops for longer than any limit of ours, as in a full garbage collection, and goes
 * on: that costs time, and neither a task nor a map output.
 *
 * @param path by which executors read each other's blocks
 */
abstract class Pauses(path: String) extends ClusterSuite {
  private val pauses =
    if (Soak.longRuns > 1) Seq(12, 30, 60)
    else if (path == "peer") Seq(12)
    else Nil

  private val by = if (path == "peer") "" else s", blocks by $path"

  override protected def settings: Map[String, String] =
    if (path == "peer") super.settings
    else super.settings + ("spark.zerohop.paths" -> s"local,$path,staged")

  for (seconds <- pauses) {
    test(s"an owner pauses for $seconds s before readers know it") {
      Soak.repeat(s"owner paused for $seconds s before contact$by", Soak.longRuns) { run =>
        cluster.awaitExecutors()
        val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
        cluster.run("the map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
        val pids = cluster.pids.toSeq.sorted
        losesNothing(seconds) {
          Cluster.pause(pids(run % pids.size)._2, seconds)
          Workload.answer(shuffled)((_, _) => ())
        }
      }
    }

    test(s"an owner pauses for $seconds s while it is read") {
      Soak.repeat(s"owner paused for $seconds s during read$by", Soak.longRuns) { run =>
        cluster.awaitExecutors()
        val fault = Fault.in(folder)
        val failed = losesNothing(seconds) {
          Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ())) { (partition, record) =>
            if (partition == run % Workload.Reducers && record == 100) fault.pauseOthers(seconds)
          }
        }
        assert(fault.happened)
        failed
      }
    }

    test(s"a reader pauses for $seconds s, with its leases") {
      Soak.repeat(s"reader paused for $seconds s$by", Soak.longRuns) { run =>
        cluster.awaitExecutors()
        val fault = Fault.in(folder)
        val failed = losesNothing(seconds) {
          Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ())) { (partition, record) =>
            if (partition == run % Workload.Reducers && record == 100) fault.pauseSelf(seconds)
          }
        }
        assert(fault.happened)
        failed
      }
    }
  }

  private def losesNothing(seconds: Int)(job: => Workload.Answer): Int = {
    val (answer, bytes) = cluster.counted(s"a pause of $seconds s", (120 + seconds).seconds)(job)
    assert(answer === Workload.expected)
    assert(bytes.fetchFailures === Seq.empty)
    assert(bytes.failedTasks === 0)
    assert(bytes.finishedMapTasks <= Workload.Maps)
    if (ManagerUnderTest.isZerohop) cluster.assertNothingHeld()
    bytes.failedTasks
  }
}

/** Executors of one node, which map each other's memory. */
@RunBy.Faults
class PauseSuite extends Pauses("peer")

/** As between nodes: owners send their blocks over Spark's connections. In a soak alone. */
@RunBy.Faults
class SentPauseSuite extends Pauses("sent")
