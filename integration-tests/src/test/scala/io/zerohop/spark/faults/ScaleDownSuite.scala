package io.zerohop.spark.faults

import java.nio.file.{Files, Path}

import scala.concurrent.duration._

import io.zerohop.spark.platforms.Examples
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.spark.HashPartitioner
import org.apache.spark.rdd.RDD
import org.apache.spark.zerohop.SparkInternals

/**
 * Executors come and go within one job, with examples/dynamic-allocation/decommission.conf: who goes
 * hands over its blocks, and no map task runs again.
 */
@RunBy.Faults
class ScaleDownSuite extends ClusterSuite {
  override protected def executors: Int = 3

  override protected def settings: Map[String, String] =
    Examples.conf("dynamic-allocation/decommission.conf") ++ Map(
      "spark.shuffle.manager" -> ManagerUnderTest.name,
      "spark.dynamicAllocation.maxExecutors" -> executors.toString,
      "spark.dynamicAllocation.executorIdleTimeout" -> "2s",
      "spark.dynamicAllocation.schedulerBacklogTimeout" -> "1s",
      "spark.storage.decommission.replicationReattemptInterval" -> "1s",
      "spark.executor.decommission.killInterval" -> "60s")

  // The job itself is what asks for them.
  override protected def await: Boolean = false

  test("a job that scales up and down computes nothing twice") {
    val scaledDown = folder.resolve("scaled-down")
    var most = 0
    val (answer, bytes) = cluster.counted("scale up and down", 480.seconds) {
      val job = Bounded.async(Workload.answer(joined(scaledDown))((_, _) => ()))
      Bounded.until(s"$executors executors", 180.seconds) {
        most = most.max(SparkInternals.executorIds(cluster.sc).size)
        most == executors
      }
      Bounded.until("one executor again", 180.seconds) {
        val there = SparkInternals.executorIds(cluster.sc).size
        most = most.max(there)
        there == 1 && mapsAreDone
      }
      Files.createFile(scaledDown)
      job()
    }
    info(s"$most executors, then one")
    assert(answer === Workload.expected)
    assert(bytes.finishedMapTasks === Workload.Maps + 1, "map tasks ran again")
    assert(bytes.failedTasks === 0)
    if (ManagerUnderTest.isZerohop) assert(bytes.bytes("staged") > 0, "nothing had migrated")
  }

  /** The maps take their time, so that they are worth more executors, and one waits for the end. */
  private def joined(scaledDown: Path): RDD[(Int, (Int, String))] = {
    val shuffled = Workload.shuffled(cluster.sc) { (_, record) =>
      if (record == 0) Thread.sleep(3000)
    }
    val sign = scaledDown.toString
    val waiting = cluster.sc
      .parallelize(Seq(0), 1)
      .map { key =>
        Bounded.until("executors that go", 300.seconds)(Files.exists(Path.of(sign)))
        (key, key)
      }
      .partitionBy(new HashPartitioner(Workload.Reducers))
    shuffled.zipPartitions(waiting) { (records, waited) =>
      waited.foreach(_ => ())
      records
    }
  }

  private def mapsAreDone: Boolean =
    SparkInternals.shuffleIds(cluster.sc).exists { id =>
      SparkInternals.mapOutputOwners(id).size == Workload.Maps
    }
}
