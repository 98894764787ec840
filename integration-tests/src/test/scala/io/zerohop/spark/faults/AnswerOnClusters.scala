package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, PathBytes}
import org.scalatest.funsuite.AnyFunSuite

/** The same answer whatever is set; one short-lived cluster per configuration. */
abstract class AnswerOnClusters extends AnyFunSuite {

  protected final def runWith(settings: (String, String)*): PathBytes =
    Cluster.withCluster(2, settings: _*) { cluster =>
      val (answer, bytes) = cluster.counted(settings.mkString(" ")) {
        Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ())
      }
      assert(answer === Workload.expected)
      assert(bytes.failedTasks === 0)
      if (ManagerUnderTest.isZerohop && !settings.contains("spark.zerohop.enabled" -> "false")) {
        cluster.assertNothingHeld()
      }
      bytes
    }

  protected final def onZerohop(check: => Any): Unit = if (ManagerUnderTest.isZerohop) check: Unit
}
