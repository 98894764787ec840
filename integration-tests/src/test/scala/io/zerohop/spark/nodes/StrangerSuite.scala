package io.zerohop.spark.nodes

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.RunBy

/**
 * Somebody connects to the port at which executors of other nodes ask, who does not belong to the
 * application: he gets nothing, and breaks nothing.
 */
@RunBy.Nodes
class StrangerSuite extends UcxNodesSuite {
  private val Secret = "the secret of this test"

  /** So that the transfer is not over before it is struck. */
  private val SlowMebibytes = 16

  override protected def settings: Map[String, String] = super.settings ++ Map(
    "spark.authenticate" -> "true",
    "spark.authenticate.secret" -> Secret)

  test("another secret") {
    withControlPort("another secret at the control port") { (app, port) =>
      val at = Seq(app.nodes.first.address, port.toString)
      def introduced(secret: String*) =
        app.stranger(app.nodes.second, (at :+ Stranger.Secret) ++ secret: _*)
      // Or else nobody could be refused for his secret.
      assert(introduced(Secret) === Stranger.Admitted)
      assert(introduced("another one").startsWith(Stranger.Refused))
      assert(introduced().startsWith(Stranger.Refused))
    }
  }

  test("garbage") {
    withControlPort("garbage at the control port") { (app, port) =>
      app.stranger(app.nodes.second, app.nodes.first.address, port.toString, Stranger.Garbage)
    }
  }

  /** An executor's port, as its metrics have it; none until they do. */
  private def controlPort(app: NodesApplication, executor: String): Option[Int] = {
    val ports = app.ask(s"gauge ${NodesApplication.ControlPort}")
    if (ports.has(executor)) Some(ports.number(executor).toInt) else None
  }

  /** In the middle of a transfer; the same executors go on, and so does the transfer. */
  private def withControlPort(fault: String)(visit: (NodesApplication, Int) => Unit): Unit =
    Soak.repeat(fault) { run =>
      onNodes { app =>
        app.transfer() // Executors that never shuffled have no port.
        val before = app.executors(app.nodes.first)
        val executor = before.keys.toSeq.sorted.apply(run % before.size)
        val port = controlPort(app, executor)
        assert(port.exists(_ > 0), "executors serve other nodes")
        app.nodes.slow(SlowMebibytes)
        val facts =
          try app.transferStruck(visit(app, port.get))
          finally app.nodes.clear()
        assertRight(facts)
        assert(facts.number("failed_tasks") === 0, facts)
        assert(app.executors(app.nodes.first) === before)
        assertGoodAsNew(app)
        failedTasks(facts)
      }
    }
}
