package io.zerohop.spark.nodes

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.{Cluster, RunBy}

/** Two nodes as users have them, with no key of UCX's: owners send over Spark's block ports. */
@RunBy.Nodes
class SentBetweenNodesSuite extends NodesSuite {
  private val CutMillis = 3000L
  private val SlowMebibytes = 4

  override protected def between: String = "sent"

  /** The defaults of what all suites on two nodes set for UCX. */
  override protected def settings: Map[String, String] = Map(
    "spark.zerohop.paths" -> "local,peer,ucx,sent,staged",
    "spark.zerohop.ucx.trustedNetwork" -> "false",
    "spark.zerohop.ucx.jucx" -> "")

  test("blocks are sent, and none is staged") {
    onNodes { app =>
      val facts = app.transfer()
      assertRight(facts)
      NodePaths.assertExpected(facts, between)
    }
  }

  test("the link is cut in the middle of a transfer, and mended seconds later") {
    Soak.repeat("link between nodes cut and mended under sent blocks") { run =>
      onNodes { app =>
        val end = if (run % 2 == 0) app.nodes.first else app.nodes.second
        app.nodes.slow(SlowMebibytes)
        val facts =
          try app.transferStruck {
              app.nodes.cut(end)
              Thread.sleep(CutMillis)
              app.nodes.mend()
            }
          finally {
            app.nodes.mend()
            app.nodes.clear()
          }
        assertRightOrLost(facts)
        assertGoodAsNew(app)
        failedTasks(facts)
      }
    }
  }

  test("an owner is killed in the middle of a transfer") {
    Soak.repeat("executor killed that sends to another node") { _ =>
      onNodes { app =>
        val victim = app.executors(app.nodes.second).values.head
        app.nodes.slow(SlowMebibytes)
        val facts =
          try app.transferStruck(Cluster.kill(victim))
          finally app.nodes.clear()
        assertRight(facts)
        assertGoodAsNew(app)
        failedTasks(facts)
      }
    }
  }
}
