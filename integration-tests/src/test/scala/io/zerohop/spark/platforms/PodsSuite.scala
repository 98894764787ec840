package io.zerohop.spark.platforms

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory
import io.zerohop.cluster.{ClusterException, Node, TwoNodes}
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import io.zerohop.spark.versions.{AppJar, ShuffleApp, SparkHomes}
import org.scalatest.{Canceled, Failed, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/**
 * Two executors as in two pods of one node, by examples/kubernetes: mount, PID, IPC, UTS and network
 * namespaces of their own, the uid of Spark's images without any capability, and the application's
 * folder that the pod template's init container makes in the node's.
 */
@RunBy.Platforms
class PodsSuite extends AnyFunSuite {
  private val LimitSeconds = 150L
  private val MasterPort = 7077
  private val repository = Distribution.repository
  private val target = Paths.get(sys.props("zerohop.test.target")).toAbsolutePath.normalize
  private val home = repository.resolve("benchmarks/spark/target/spark-home")

  /** The project as pods see it, whose user may not enter the folders above it. */
  private val Mounted = Paths.get("/mnt/project")

  override protected def withFixture(test: NoArgTest): Outcome =
    if (!ManagerUnderTest.isZerohop) Canceled("this is about Zerohop's paths")
    else missing match {
      case Some(reason) if SparkHomes.isCi => Failed(reason)
      case Some(reason) => Canceled(reason)
      case None => super.withFixture(test)
    }

  test("pods that share the folder read each other's memory") {
    val report = run(shared = true)
    assertRight(report)
    assert(report.getOrElse("zerohop.peer.bytes", "0").toLong > 0, report)
    assert(report.getOrElse("zerohop.staged.bytes", "0") === "0", report)
  }

  test("pods with a folder each read over the network") {
    val report = run(shared = false)
    assertRight(report)
    assert(report.getOrElse("zerohop.peer.bytes", "0") === "0", report)
    assert(report.getOrElse("zerohop.sent.bytes", "0").toLong > 0, report)
    assert(report.getOrElse("zerohop.staged.bytes", "0") === "0", report)
  }

  private def assertRight(report: Map[String, String]): Unit = {
    assert(report("groups") === "1000")
    assert(report("sum") === "4999950000")
  }

  private def missing: Option[String] =
    if (!Files.isExecutable(Paths.get("/usr/bin/setpriv"))) Some("pods need setpriv")
    else
      try {
        TwoNodes.make().close()
        None
      } catch {
        case e: ClusterException => Some(s"pods need root, iproute2 and nftables (${e.getMessage})")
      }

  /** A master and the driver on the first node, and a pod with a worker on each. */
  private def run(shared: Boolean): Map[String, String] = {
    val folder =
      Files.createTempDirectory(Files.createDirectories(target.resolve("platforms")), "pods-")
    Using.resource(TwoNodes.make()) { nodes =>
      val master = s"spark://${nodes.first.address}:$MasterPort"
      var processes = Seq.empty[Process]
      try {
        processes :+= start(nodes.first, folder, "master",
          Distribution.java(
            home.toString, "org.apache.spark.deploy.master.Master",
            Seq("--host", nodes.first.address, "--port", MasterPort.toString, "--webui-port", "0")))
        Bounded.until("a master", 60.seconds) {
          nodes.first.run("ss", "-H", "-l", "-t", "-n", s"sport = :$MasterPort").nonEmpty
        }
        for ((node, i) <- Seq(nodes.first, nodes.second).zipWithIndex) {
          val onNode = Files.createDirectories(folder.resolve(if (shared) "node" else s"node-$i"))
          processes :+= start(node, folder, s"pod-$i", pod(node, onNode, master))
        }
        AppJar.report(submit(nodes.first, folder, master), "shuffle-app:")
      } finally processes.reverse.foreach(Distribution.end)
    }
  }

  private def start(node: Node, folder: Path, name: String, command: Seq[String]): Process =
    Distribution
      .process(node.command(command.asJava).asScala.toSeq, folder, name,
        Map(
          "SPARK_HOME" -> home.toString,
          "SPARK_LOCAL_IP" -> node.address,
          "SPARK_SCALA_VERSION" -> "2.13"))
      .start()

  /** A worker in a pod; its executors are in there with it. */
  private def pod(node: Node, onNode: Path, master: String): Seq[String] = {
    val mounted = Mounted.resolve(repository.relativize(home)).toString
    val worker = Distribution.java(mounted, "org.apache.spark.deploy.worker.Worker",
      Seq(
        "--host", node.address, "--webui-port", "0", "--cores", "1", "--memory", "1g",
        "--work-dir", "/tmp/work", master))
    Seq("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", "-c",
      PodsSuite.Start, "pod", repository.toString, onNode.toString, nodeCommand, initCommand, uid,
      mounted) ++
      worker
  }

  private def submit(node: Node, folder: Path, master: String): String = {
    val conf = Examples.conf("kubernetes/zerohop.conf").filter { case (key, _) =>
      !key.startsWith("spark.kubernetes.") // Nobody here makes pods of templates.
    }
    val jar = SparkHomes.zerohopJar
    val settings = conf ++ Map(
      "spark.driver.extraClassPath" -> s"$jar:${AppJar.path}",
      "spark.executor.extraClassPath" -> Mounted.resolve(repository.relativize(jar)).toString,
      "spark.driver.host" -> node.address,
      "spark.executor.memory" -> "512m",
      "spark.zerohop.pool.size" -> "128m",
      "spark.cores.max" -> "2",
      "spark.scheduler.minRegisteredResourcesRatio" -> "1.0",
      "spark.ui.enabled" -> "false")
    val words = Seq("--master", master) ++
      settings.toSeq.sorted.flatMap { case (key, value) => Seq("--conf", s"$key=$value") } ++
      Seq("--class", classOf[ShuffleApp].getName, AppJar.path.toString)
    val java = Distribution.java(home.toString, "org.apache.spark.deploy.SparkSubmit", words)
    val at = java.indexOf("-cp") + 1
    val driver = start(node, folder, "driver", java.updated(at, s"$jar:${java(at)}"))
    try {
      assert(driver.waitFor(LimitSeconds, TimeUnit.SECONDS), s"no end in $LimitSeconds s: $folder")
      assert(driver.exitValue === 0, s"see $folder")
      Files.readString(folder.resolve("driver.out"))
    } finally Distribution.end(driver)
  }

  private lazy val template =
    new ObjectMapper(new YAMLFactory)
      .readTree(Examples.folder.resolve("kubernetes/executor-pod.yaml").toFile)

  private def uid: String = template.at("/spec/securityContext/runAsUser").asText

  /** The last word of `sh -c COMMAND`. */
  private def initCommand: String = template.at("/spec/initContainers/0/command/2").asText

  /** What makes the node's folder, without its waiting for ever. */
  private def nodeCommand: String = {
    val node = new ObjectMapper(new YAMLFactory)
      .readTree(Examples.folder.resolve("kubernetes/node-folder.yaml").toFile)
      .at("/spec/template/spec/containers/0")
    for (container <- Seq(node, template.at("/spec/initContainers/0"))) {
      val capabilities = container.at("/securityContext/capabilities")
      assert(capabilities.at("/drop/0").asText === "ALL")
      assert(!capabilities.has("add"))
    }
    node.at("/command/2").asText.stripSuffix(" && exec sleep infinity")
  }
}

object PodsSuite {

  /**
   * What the kubelet and the container runtime do before the executor's command: of the host there
   * are the volume and, as it were in the image, the project; nothing else is shared.
   */
  private val Start =
    """set -eu
      |project=$1 volume=$2 node=$3 init=$4 uid=$5 home=$6
      |shift 6
      |mount -t proc proc /proc
      |mount -t tmpfs tmpfs /mnt
      |mkdir /mnt/project /mnt/volume
      |mount --bind "$project" /mnt/project
      |mount --bind "$volume" /mnt/volume
      |mount -t tmpfs -o mode=1777 tmpfs /tmp
      |mount -t tmpfs -o mode=1777 tmpfs /dev/shm
      |mount -t tmpfs -o mode=755 tmpfs /run
      |mkdir /run/zerohop
      |mount --bind /mnt/volume /run/zerohop
      |setpriv --inh-caps=-all --bounding-set=-all sh -c "$node" # As user 0.
      |export ZEROHOP_APP=spark-0123 # As from the label.
      |setpriv --reuid="$uid" --regid="$uid" --clear-groups --bounding-set=-all sh -c "$init"
      |mount --bind "/run/zerohop/$ZEROHOP_APP" /run/zerohop
      |cp /etc/passwd /mnt/passwd
      |echo "spark:x:$uid:$uid::/tmp:/bin/false" >> /mnt/passwd # As the images' entry point does.
      |mount --bind /mnt/passwd /etc/passwd
      |cd /tmp
      |export SPARK_HOME="$home" SPARK_LOCAL_DIRS=/tmp/local
      |exec setpriv --reuid="$uid" --regid="$uid" --clear-groups --bounding-set=-all "$@"
      |""".stripMargin
}
