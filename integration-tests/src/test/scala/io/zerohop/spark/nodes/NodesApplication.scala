package io.zerohop.spark.nodes

import java.nio.file.{Files, Path}
import java.time.Duration

import scala.concurrent.{ExecutionContext, Future}
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.cluster.{Node, NodeCluster, SparkApplication, TwoNodes}
import io.zerohop.spark.support.{Bounded, Cluster, Facts, ScenarioServer}

/** A [[NodesTestApp]] on two nodes of its own. Owns all of it; not for several threads. */
final class NodesApplication private (
    val nodes: TwoNodes,
    cluster: NodeCluster,
    application: SparkApplication,
    folder: Path)
    extends AutoCloseable {
  import NodesApplication._

  /** Spark's id of it. */
  lazy val id: String = ask("application").text("id")

  /** Runs a scenario and returns what it has seen. */
  def ask(scenario: String): Facts = Facts.read(application.ask(scenario, ScenarioLimit))

  /** Transfers without a fault. */
  def transfer(): Facts = ask(s"transfer ${newMarker()}")

  /** Transfers, and strikes when the first reader is in the middle of its records. */
  def transferStruck(strike: => Unit): Facts = {
    val marker = newMarker()
    struck(s"transfer $marker", marker)(strike)
  }

  /** Runs a scenario, and strikes when a reader has made a file in its middle. */
  def struck(scenario: String, marker: Path)(strike: => Unit): Facts = {
    val answer = Future(ask(scenario))(ExecutionContext.global)
    Bounded.until("the middle of a transfer", Limit) {
      Files.exists(marker) || answer.isCompleted
    }
    assert(!answer.isCompleted, "the transfer was over before it was struck")
    strike
    Bounded.until("the end of a transfer", Limit)(answer.isCompleted)
    answer.value.get.get
  }

  /** Executors that run on a node, by id. */
  def executors(node: Node): Map[String, Long] = {
    val here = node.processes.asScala.map(_.toLong).toSet
    Cluster.executorProcesses(id).filter { case (_, pid) => here(pid) }
  }

  /**
   * Resets every connection to an executor's block port, behind the executors' backs, as what lies
   * between nodes may do; returns how many there were.
   */
  def resetConnections(): Int = {
    val ports = ask("ports")
    val reset = for {
      node <- Seq(nodes.first, nodes.second)
      executor <- executors(node).keys
      port = ports.number(executor)
    } yield node.run("ss", "-K", "-H", "-t", "-n", s"sport = :$port").linesIterator.size
    reset.sum
  }

  /** Runs a program that does not belong to the application, on a node; its last words, if any. */
  def stranger(node: Node, arguments: String*): String = {
    val command = cluster.home.javaCommand(
      Seq("-Xmx128m").asJava,
      NodesHost.classPath.asJava,
      Stranger.getClass.getName.stripSuffix("$"),
      arguments.asJava)
    node.run(command.asScala.toSeq: _*).linesIterator.toSeq.lastOption.getOrElse("")
  }

  /** A name for a file that is not there yet. */
  def newMarker(): Path = folder.resolve(s"middle-${java.util.UUID.randomUUID}")

  override def close(): Unit = Using.resources(nodes, cluster, application)((_, _, _) => ())
}

object NodesApplication {

  /** The gauge of the port at which an executor is asked. */
  val ControlPort = "control.port"

  private val StartLimit = Duration.ofSeconds(120)
  private val ScenarioLimit = Duration.ofSeconds(200)
  private val Limit = 200.seconds

  /** Makes two nodes, starts a cluster on them and submits; returns when executors take tasks. */
  def start(name: String, settings: Map[String, String]): NodesApplication = {
    val folder = Files.createTempDirectory(
      Files.createDirectories(NodesHost.target.resolve("nodes")), s"$name-")
    val nodes = TwoNodes.make()
    closingOnFailure(nodes) {
      val cluster = NodesHost.cluster(nodes, folder, settings)
      closingOnFailure(cluster) {
        val submission = NodesHost.submission(cluster.master, settings)
        val application = SparkApplication.start(
          name, cluster.home, nodes.first, submission, folder.resolve("driver.log"))
        closingOnFailure(application) {
          assert(application.answer(StartLimit) == ScenarioServer.Ready)
          new NodesApplication(nodes, cluster, application, folder)
        }
      }
    }
  }

  private def closingOnFailure[T](owned: AutoCloseable)(body: => T): T =
    try body
    catch {
      case e: Throwable =>
        owned.close()
        throw e
    }
}
