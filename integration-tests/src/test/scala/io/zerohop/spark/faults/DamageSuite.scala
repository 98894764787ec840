package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{ExecutorMemory, RunBy}
import org.apache.spark.zerohop.SparkInternals

/**
 * Bytes of an executor's segments flip while nobody looks. Readers notice, Spark runs the map tasks
 * again, and the answer stays the same.
 */
abstract class DamagedMemory extends ClusterSuite {

  test("in payloads") {
    damaged("payload flipped")((memory, _) => memory.damagePayloads(Workload.Marker))
  }

  test("in catalog entries") {
    damaged("catalog entry flipped")(_.damageEntries(_))
  }

  /** @param damage flips bytes of one executor for one shuffle and returns how many */
  protected def damaged(fault: String)(damage: (ExecutorMemory, Int) => Int): Unit = {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no segments")
    Soak.repeat(fault) { run =>
      cluster.awaitExecutors()
      val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
      // The map stage alone, so that no reader has seen and checked anything yet.
      val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
      val (_, pid) = cluster.pids.toSeq.sorted.apply(run % executors)
      assert(damage(new ExecutorMemory(pid), id) > 0)
      val (answer, bytes) = cluster.counted(fault)(Workload.answer(shuffled)((_, _) => ()))
      assert(answer === Workload.expected)
      assert(bytes.finishedMapTasks > 0, "no map task ran again")
      cluster.assertNothingHeld()
      bytes.failedTasks
    }
  }
}

@RunBy.Faults
class DamageSuite extends DamagedMemory {
  test("in the headers of catalog chunks") {
    damaged("catalog chunk flipped")(_.damageChunks(_))
  }
}

/**
 * Where blocks are wrapped to be sent: no damage is compressed and passed on as well. Owners do not
 * read their chunks' headers.
 */
@RunBy.Faults
class StagedDamageSuite extends DamagedMemory {
  override protected def settings: Map[String, String] = Map("spark.zerohop.paths" -> "staged")
}
