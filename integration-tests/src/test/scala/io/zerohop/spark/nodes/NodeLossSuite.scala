package io.zerohop.spark.nodes

import io.zerohop.cluster.Node
import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.{Cluster, RunBy}

/** An executor dies by SIGKILL while the other node reads from it, and it from the other node. */
@RunBy.Nodes
class NodeLossSuite extends NodesSuite {
  private val SlowMebibytes = 4

  test("the only executor of a node is killed in the middle of a transfer") {
    killed("executor killed that a node has alone")(_.nodes.second)
  }

  test("one of two executors of a node is killed in the middle of a transfer") {
    killed("one of two executors of a node killed")(_.nodes.first)
  }

  private def killed(fault: String)(at: NodesApplication => Node): Unit =
    Soak.repeat(fault) { run =>
      onNodes { app =>
        val there = app.executors(at(app)).toSeq.sorted
        val (_, victim) = there(run % there.size)
        app.nodes.slow(SlowMebibytes)
        val facts =
          try app.transferStruck(Cluster.kill(victim))
          finally app.nodes.clear()
        assertRight(facts)
        assert(facts.number("failed_tasks") > 0, facts)
        assertGoodAsNew(app)
        failedTasks(facts)
      }
    }
}
