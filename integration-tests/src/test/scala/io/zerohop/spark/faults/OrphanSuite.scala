package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.spark.zerohop.SparkInternals

/** Executors that nobody told that a shuffle has ended. */
@RunBy.Faults
class OrphanSuite extends ClusterSuite {
  override protected def settings: Map[String, String] =
    Map("spark.zerohop.orphans.interval" -> "1s")

  test("a shuffle that the driver dropped unheard goes, and a live one stays") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no pool")
    val kept = Workload.shuffled(cluster.sc)((_, _) => ())
    cluster.run("map stage of the one that stays")(SparkInternals.runMapStage(cluster.sc, kept))
    val outputs = used
    val dropped = Workload.shuffled(cluster.sc)((_, _) => ())
    val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, dropped))
    assert(used > outputs)
    SparkInternals.forgetInDriver(id)
    Bounded.until(s"bytes back to $outputs from $used", 60.seconds)(used <= outputs)
    val (answer, bytes) = cluster.counted("read of the other") {
      Workload.answer(kept)((_, _) => ())
    }
    assert(answer === Workload.expected)
    assert(bytes.finishedMapTasks === 0, "map tasks of the live shuffle ran again")
    cluster.assertNothingHeld()
  }

  private def used: Long = cluster.gauges("pool.used.bytes").values.sum
}
