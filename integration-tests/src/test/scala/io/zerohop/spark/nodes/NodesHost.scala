package io.zerohop.spark.nodes

import java.nio.file.{Files, Path, Paths}
import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.cluster.{ClusterException, Installation, NodeCluster, Submission, TwoNodes}
import io.zerohop.cluster.NodeCluster.WorkerShape
import io.zerohop.shuffle.transport.ucx.engine.{UcxException, UcxLoader}
import io.zerohop.spark.suites.ManagerUnderTest

/** What the build has made for applications on two nodes, and how they are submitted. */
object NodesHost {

  /** Two on the first node, which read each other in place, and one on the second. */
  val Executors = 3

  private val OnFirst = 2
  private val MemoryMib = 1024
  private val DriverMemory = "768m"

  /** Why this user or machine cannot have two nodes; none if it can. */
  lazy val missing: Option[String] =
    try {
      TwoNodes.make().close()
      None
    } catch {
      case e: ClusterException =>
        Some(s"two nodes need root, iproute2 and nftables (${e.getMessage})")
    }

  /** Why executors cannot read each other by UCX; none if they can. */
  lazy val missingUcx: Option[String] =
    try {
      UcxLoader.look()
      None
    } catch { case e: UcxException => Some(e.getMessage) }

  lazy val target: Path = Paths.get(sys.props("zerohop.test.target")).toAbsolutePath.normalize

  lazy val installation: Installation = Installation.in(repository)

  private def repository: Path =
    Paths.get(sys.props("zerohop.test.repository")).toAbsolutePath.normalize

  /** Zerohop as users have it, and the tests' classes. */
  lazy val classPath: Seq[Path] =
    // The tests' own configuration of logging would keep quiet.
    Seq(
      installation.sparkHome.root.resolve("conf"),
      installation.zerohopJar,
      installation.applicationJar,
      target.resolve("test-classes")) ++ suiteJars ++ installation.applicationJars.asScala

  /** Spark notices within seconds that a worker or an executor is out of reach. */
  private val Impatient = Map(
    "spark.network.timeout" -> "12s",
    "spark.network.timeoutInterval" -> "1s",
    "spark.executor.heartbeatInterval" -> "2s")

  def cluster(nodes: TwoNodes, folder: Path, settings: Map[String, String]): NodeCluster = {
    val daemons = settings.filter(_._1.startsWith("spark.authenticate")) +
      ("spark.worker.timeout" -> "8") + ("spark.master.rest.enabled" -> "false")
    NodeCluster.start(
      nodes, installation, folder, worker(OnFirst), worker(Executors - OnFirst), daemons.asJava)
  }

  private def worker(executors: Int) = new WorkerShape(executors, executors * MemoryMib)

  def submission(master: String, settings: Map[String, String]): Submission =
    new Submission(
      master,
      NodesTestApp.getClass.getName.stripSuffix("$"),
      installation.applicationJar,
      Seq.empty[Path].asJava,
      classPath.asJava,
      DriverMemory,
      (shape ++ Impatient ++ settings).asJava: JavaMap[String, String],
      Seq(target.toString, Executors.toString).asJava)

  private def shape: Map[String, String] = Map(
    "spark.executor.cores" -> "1",
    "spark.cores.max" -> Executors.toString,
    "spark.shuffle.manager" -> ManagerUnderTest.className,
    // Small, so that a reader opens many windows, and something is always still to be fetched.
    "spark.zerohop.fetch.window.size" -> "2m",
    "spark.ui.enabled" -> "false")

  /** What has executors of the two nodes read each other by UCX. */
  def ucx: Map[String, String] = Map(
    // Two nodes of one kernel: UCX would find out, and use shared memory.
    "spark.executorEnv.UCX_TLS" -> "tcp",
    "spark.zerohop.ucx.trustedNetwork" -> "true",
    // There are no one-sided gets between network namespaces.
    "spark.zerohop.internal.ucx.emulatedGets" -> "true",
    "spark.zerohop.paths" -> "local,peer,ucx,staged")

  private def suiteJars: Seq[Path] =
    Using.resource(Files.list(target.resolve("suite-jars")))(_.iterator.asScala.toVector.sorted)
}
