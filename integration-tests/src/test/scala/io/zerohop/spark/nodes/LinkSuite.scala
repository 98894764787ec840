package io.zerohop.spark.nodes

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.{Facts, RunBy}

/** The link between two nodes breaks or is bad: answers are right, or jobs fail and say so. */
@RunBy.Nodes
class LinkSuite extends NodesSuite {
  private val CutMillis = 3000L

  // What is on its way when the link is cut shall be there a while.
  private val SlowMebibytes = 4

  test("5 % of the packets are lost") {
    Soak.repeat("5 % of packets lost between nodes") { _ =>
      onNodes { app =>
        app.nodes.lose(5)
        val facts =
          try app.transfer()
          finally app.nodes.clear()
        assertRight(facts)
        assert(NodePaths.bytes(facts, NodePaths.Between) > 0, facts)
        app.ask("settle")
        failedTasks(facts)
      }
    }
  }

  test("cut in the middle of a transfer, and mended seconds later") {
    cut("link between nodes cut and mended") { app =>
      Thread.sleep(CutMillis)
      app.nodes.mend()
    }
  }

  test("cut in the middle of a transfer, until Spark has given up the executor") {
    cut("link between nodes cut until the job ends")(_ => ())
  }

  /** Either end is cut in turns. */
  private def cut(fault: String)(andThen: NodesApplication => Unit): Unit =
    Soak.repeat(fault) { run =>
      onNodes { app =>
        val end = if (run % 2 == 0) app.nodes.first else app.nodes.second
        app.nodes.slow(SlowMebibytes)
        val facts: Facts =
          try app.transferStruck {
              app.nodes.cut(end)
              andThen(app)
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
