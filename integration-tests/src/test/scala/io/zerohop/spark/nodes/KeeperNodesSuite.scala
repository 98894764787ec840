package io.zerohop.spark.nodes

import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import io.zerohop.cluster.Node
import io.zerohop.spark.support.{Bounded, Cluster, Facts, Leftover, RunBy}

/** Executors end on one node, and executors of the other read what they have left there. */
abstract class KeeperNodes extends NodesSuite {

  /** Below those that Linux gives to connections. */
  protected val Port = 23210

  override protected def settings: Map[String, String] =
    Map("spark.zerohop.keeper" -> "true", "spark.zerohop.keeper.port" -> Port.toString)

  test("no output is computed again of a node's only executor that is killed between stages") {
    onNodes { app =>
      app.ask(s"keep ${app.newMarker()}")
      killAndNotice(app)
      val facts = app.ask("readKept")
      assertKept(facts)
      assert(NodePaths.bytes(facts, "staged") > 0, facts)
      assert(left(app.nodes.second).nonEmpty)
      assertNothingLeft(app)
    }
  }

  /** Kills the only executor of the second node; returns when the driver gives it no more tasks. */
  protected def killAndNotice(app: NodesApplication): Unit = {
    val (id, victim) = app.executors(app.nodes.second).head
    Cluster.kill(victim)
    Bounded.until(s"the loss of executor $id", 30.seconds)(!app.ask("executors").has(id))
  }

  protected def assertKept(facts: Facts): Unit = {
    assertRight(facts)
    assert(facts.number("map_tasks") === 0, facts)
    assert(facts.number("fetch_failures") === 0, facts)
  }

  protected def assertNothingLeft(app: NodesApplication): Unit = {
    app.ask("settle")
    Leftover.unless("keepers hold nothing of the dead") {
      Seq(app.nodes.first, app.nodes.second).flatMap(left).isEmpty
    }
  }

  protected def keepers(node: Node): Set[Long] =
    node.processes.asScala.map(_.toLong).toSet.filter { pid =>
      Try(Files.readString(Paths.get(s"/proc/$pid/cmdline"))).toOption
        .exists(_.contains("io.zerohop.spark.keeper.KeeperProcess"))
    }

  /** Sockets by which the keeper of a node serves what executors have left. */
  protected def left(node: Node): Seq[Path] =
    folders(node).flatMap { folder =>
      Try(Using.resource(Files.walk(folder)) {
        _.iterator.asScala.filter(_.toString.endsWith(".left")).toVector
      }).getOrElse(Vector.empty)
    }

  /** As `NodeCluster` names them; not those that a run before left, since it was killed. */
  private def folders(node: Node): Seq[Path] =
    Using.resource(Files.list(Paths.get("/tmp"))) {
      _.iterator.asScala.filter { folder =>
        folder.getFileName.toString.startsWith(s"zh-${node.id}") &&
        Files.getLastModifiedTime(folder).toInstant.isAfter(begin)
      }.toVector
    }

  private val begin = ProcessHandle.current.info.startInstant.get
}

/** The same with Spark's own proof and encryption. */
@RunBy.Nodes
class KeeperAuthenticatedSuite extends KeeperNodes {
  override protected def settings: Map[String, String] = super.settings ++ Map(
    "spark.authenticate" -> "true",
    "spark.authenticate.secret" -> "a secret of this test",
    "spark.network.crypto.enabled" -> "true")
}

/** Keepers with any port. */
@RunBy.Nodes
class KeeperRestartSuite extends KeeperNodes {
  override protected def settings: Map[String, String] = Map("spark.zerohop.keeper" -> "true")

  test("a keeper that is started again answers at the port that map statuses name") {
    onNodes { app =>
      app.ask(s"keep ${app.newMarker()}")
      val second = app.nodes.second
      val killed = keepers(second)
      Cluster.kill(killed.toSeq: _*)
      Bounded.until("another keeper", 60.seconds)((keepers(second) -- killed).nonEmpty)
      app.ask("awaitKept")
      killAndNotice(app)
      assertKept(app.ask("readKept"))
      assertNothingLeft(app)
    }
  }
}

/** Faults of keepers, and of what reads from them. */
@RunBy.Nodes
class KeeperNodesSuite extends KeeperNodes {
  private val SlowMebibytes = 4

  test("nor of one that is killed while executors of the other node read it") {
    onNodes { app =>
      val marker = app.newMarker()
      app.ask(s"keep $marker")
      app.nodes.slow(SlowMebibytes)
      val facts =
        try
          app.struck("readKept", marker) {
            Cluster.kill(app.executors(app.nodes.second).values.head)
          }
        finally app.nodes.clear()
      assertKept(facts)
      assertNothingLeft(app)
    }
  }

  test("a keeper that is killed with its executor costs its outputs, and no wrong row") {
    onNodes { app =>
      app.ask(s"keep ${app.newMarker()}")
      val second = app.nodes.second
      Cluster.kill(keepers(second).toSeq: _*)
      Cluster.kill(app.executors(second).values.toSeq: _*)
      val facts = app.ask("readKept")
      assertRight(facts)
      assert(facts.number("map_tasks") > 0, facts)
      assertNothingLeft(app)
    }
  }

  test("where a firewall shuts a keeper off, outputs are computed again, and then none is kept") {
    onNodes { app =>
      app.ask(s"keep ${app.newMarker()}")
      val second = app.nodes.second
      second.run("nft", "add table inet shut")
      second.run("nft", "add chain inet shut in { type filter hook input priority 0; }")
      second.run("nft", s"add rule inet shut in tcp dport $Port reject with tcp reset")
      try {
        killAndNotice(app)
        val facts = app.ask("readKept")
        assertRight(facts)
        assert(facts.number("map_tasks") > 0, facts)
        Bounded.until("storage is not reliable", 60.seconds)(!app.ask("reliable").flag("reliable"))
      } finally second.run("nft", "delete table inet shut")
      assertNothingLeft(app)
    }
  }
}
