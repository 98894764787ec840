package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.support.{Cluster, RunBy}
import org.scalatest.funsuite.AnyFunSuite

/**
 * Pools far smaller than what is shuffled, under tasks that dawdle and fail: every answer is right,
 * nothing waits in a circle, and in the end nobody holds a byte.
 */
@RunBy.Faults
class PressureSuite extends AnyFunSuite {
  private val Limit = 120.seconds
  private val Executors = 2
  private val Least = 1L << 20

  for (percent <- Seq(1, 20)) test(s"pools of $percent % of a shuffle's bytes") {
    press(percent)
  }

  test("pools of 5 % that move what is in use") {
    val always = Seq("spark.zerohop.spill.idle" -> "0", "spark.zerohop.spill.start" -> "0.5")
    assert(press(5, always: _*) > 0)
  }

  /** Returns how many map outputs left memory after they had been written. */
  private def press(percent: Int, settings: (String, String)*): Long = {
    val pool = math.max(Least, Pressure(0).bytes * percent / 100 / Executors)
    val sizes = Seq(
      "spark.zerohop.pool.size" -> s"${pool}b",
      "spark.zerohop.segment.size" -> s"${math.max(Least, pool / 4)}b",
      "spark.zerohop.write.buffer" -> "256k")
    Cluster.withCluster(Executors, sizes ++ settings: _*) { cluster =>
      val fault = s"pool of $percent %" + settings.map { case (key, value) =>
        s", $key=$value"
      }.mkString
      Soak.repeat(fault, Soak.longRuns) { run =>
        val pressure = Pressure(seed = run * 100 + percent)
        val (answer, seen) =
          cluster.counted(s"pressure $percent % run $run", Limit)(pressure.answer(cluster.sc))
        assert(answer === pressure.expected)
        assert(seen.failedTasks > 0, "no failure was injected")
        assert(seen.fetchFailures.isEmpty, "a full pool is no reason to lose blocks")
        val direct = seen.bytes("local") + seen.bytes("peer")
        // What moves at once may be gone before anybody reads it.
        assert(direct > 0 || settings.nonEmpty, "nothing found room in memory")
        assert(seen.bytes("staged") > 0, "everything found room, so there was no pressure")
        assert(cluster.gauges("files.bytes").values.sum > 0)
        assert(
          cluster.gauges("pool.host.peak.bytes").values.forall(peak => peak > 0 && peak <= pool))
        cluster.assertNothingHeld()
        seen.failedTasks
      }
      cluster.gauges("spill.files.outputs").values.sum
    }
  }
}
