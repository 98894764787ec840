package io.zerohop.spark.nodes

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.{Cluster, Facts, RunBy}

/**
 * Many shuffles between nodes whose connections are closed again and again and of which one
 * executor is replaced now and then: answers are right, and those that stay do not grow.
 */
@RunBy.Nodes
class ChurnSuite extends NodesSuite {
  private val Batch = 5
  private val (warmUp, shuffles, replaceEvery) =
    if (Soak.longRuns > 1) (100, 1000, 100) else (20, 40, 20)

  /**
   * By how much an executor may have more at the end than after the warm-up; else by nothing. In a
   * thousand shuffles 5 to 7 MB of compiled code were added; connections would have to leave 90 KiB
   * each to be noticed.
   */
  private val Tolerances = Map(
    Footprint.Resident -> (16L << 20),
    Footprint.Heap -> (8L << 20),
    Footprint.Descriptors -> 8L,
    Footprint.Threads -> 8L)

  override protected def settings: Map[String, String] = Map(
    // All of the heap from the beginning, and no optimising compiler, whose own memory comes in
    // pieces of 16 MB and stays: so that neither hides what else is resident.
    "spark.executor.extraJavaOptions" -> ("-XX:+UseSerialGC -Xms512m -XX:+AlwaysPreTouch " +
      "-XX:TieredStopAtLevel=1 " +
      s"-Dzerohop.test.target=${NodesHost.target}"))

  test("connections are closed and executors replaced between shuffles") {
    Soak.repeat(s"$shuffles shuffles between nodes with churn", 1) { _ =>
      onNodes { app =>
        val failedBefore = shuffle(app, 0 until warmUp)
        val staying = stay(app)
        val before = app.ask("footprint")
        val failed = shuffle(app, warmUp until shuffles)
        assert(stay(app) === staying, "others than those that were replaced have ended")
        assertNoGrowth(staying.keySet, before, app.ask("footprint"))
        failedBefore + failed
      }
    }
  }

  /** Runs them in batches with churn behind each; returns how many tasks failed. */
  private def shuffle(app: NodesApplication, numbers: Range): Int =
    numbers.grouped(Batch).map { batch =>
      val facts = app.ask(s"shuffles ${batch.size}")
      assertRight(facts)
      assert(NodePaths.bytes(facts, NodePaths.Between) > 0, facts)
      // Not next to where footprints are taken: whoever is new has met the others by then.
      if ((batch.last + 1) % replaceEvery == replaceEvery / 2) replaceOne(app)
      else assert(app.resetConnections() > 0, "executors were not connected")
      facts.number("failed_tasks").toInt
    }.sum

  /** The younger one of the first node, which is the one that came last. */
  private def replaceOne(app: NodesApplication): Unit = {
    Cluster.kill(app.executors(app.nodes.first).maxBy(_._1.toInt)._2)
    app.ask("settle")
    ()
  }

  /** Who is never replaced, on each node. */
  private def stay(app: NodesApplication): Map[String, Long] =
    Seq(app.nodes.first, app.nodes.second).map(app.executors(_).minBy(_._1.toInt)).toMap

  private def assertNoGrowth(executors: Set[String], before: Facts, after: Facts): Unit =
    for (executor <- executors; name <- Footprint.Names) {
      val (was, is) = (before.number(s"$executor $name"), after.number(s"$executor $name"))
      info(s"executor $executor: $name was $was and is $is")
      assert(is - was <= Tolerances.getOrElse(name, 0L), s"$name of executor $executor has grown")
    }
}
