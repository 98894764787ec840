package io.zerohop.spark.nodes

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.{Cluster, RunBy}

/** Two nodes whose executors read each other's memory by UCX. */
@RunBy.Nodes
class GotBetweenNodesSuite extends UcxNodesSuite {
  private val CutMillis = 3000L
  private val SlowMebibytes = 4

  test("the link is cut in the middle of a transfer, and mended seconds later") {
    struck("link between nodes cut and mended under gets") { app =>
      app.nodes.cut(app.nodes.second)
      Thread.sleep(CutMillis)
      app.nodes.mend()
    }
  }

  test("an owner is killed in the middle of a transfer") {
    struck("executor killed that another node gets from") { app =>
      Cluster.kill(app.executors(app.nodes.second).values.head)
    }
  }

  private def struck(fault: String)(strike: NodesApplication => Unit): Unit =
    Soak.repeat(fault) { _ =>
      onNodes { app =>
        app.nodes.slow(SlowMebibytes)
        val facts =
          try app.transferStruck(strike(app))
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
