package io.zerohop.spark.gpu

import java.io.File
import java.net.Socket
import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.sys.process._
import scala.util.{Try, Using}

import io.zerohop.cluster.{Installation, SparkHome, Submission}
import io.zerohop.spark.platforms.Distribution
import io.zerohop.spark.support.{Bounded, Local}
import io.zerohop.spark.versions.SparkHomes

/**
 * This host's GPUs in a standalone cluster, our jars and RAPIDS: what `benchmarks/gpu/rapids.sh
 * faults` has made ready, or with Maven a cluster that lives as long as this process. Two executors
 * in any case, each on a GPU of its own or, where there is one only, both on that. Without RAPIDS it
 * is a smoke run: the same applications on CPU rows.
 */
object GpuHost {
  val Executors = 2

  val Plugins = "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin"

  /** Why nothing of it can run here; none if it can. */
  lazy val missing: Option[String] =
    if (option("master").nonEmpty) None
    else if (UserCluster.master.nonEmpty)
      Some("of a cluster elsewhere no process can be killed: UserClusterSuite runs there")
    else if (option("smoke").contains("true")) None
    else if (gpus == 0) Some("no GPU here: nvidia-smi -L lists none")
    else if (isSmoke)
      Some("no RAPIDS: -Drapids.cuda=12 or 13 fetches it, -Drapids.jar=FILE names it")
    else None

  /** A property of the build, by its name behind `zerohop.test.`; none if it is not set. */
  def option(name: String): Option[String] =
    sys.props.get(s"zerohop.test.$name").filterNot(Unset.contains)

  /** What Maven makes of a property that has no value. */
  private val Unset = Set("", "null", "none")

  /** Why executors cannot read each other by UCX; none if they can. */
  def missingUcx: Option[String] =
    if (ucxLibraries.nonEmpty) None
    else Some("no UCX: LIBUCX, or -Dlibucx, names a folder that has a libucx with CUDA in lib")

  /** Where executors find libucx, beside what the host has; empty for nowhere. */
  def ucxLibraries: String = option("libucx").getOrElse("")

  /** Whether RAPIDS is left out. */
  def isSmoke: Boolean = rapids.isEmpty

  lazy val installation: Installation =
    Installation.in(Paths.get(option("project").getOrElse(property("repository"))))

  /** Its Spark's version. */
  lazy val spark: String =
    Using.resource(Files.list(installation.sparkHome.jars))(
      _.iterator.asScala.map(_.getFileName.toString).collectFirst {
        case SparkCore(version) => version
      }.get)

  private val SparkCore = raw"spark-core_[\d.]+-(.+)\.jar".r

  def logs: Path = Paths.get(property("target"))

  private lazy val master: String = option("master").getOrElse(startCluster())

  private lazy val gpus: Int = option("gpus").fold {
    Try(Seq("timeout", "20", "nvidia-smi", "-L").!!(ProcessLogger(_ => ())).linesIterator.size)
      .getOrElse(0)
  }(_.toInt)

  private def cores: Int = option("cores").fold(4)(_.toInt)

  private def rapids: Seq[Path] = option("rapids").toSeq.flatMap(paths)

  /** Jars of the tests themselves. */
  def suiteJars: Seq[Path] = paths(property("suites"))

  /** By the command file that users have, with GPUs; returns when its master answers. */
  private def startCluster(): String = {
    val folder = Files.createTempDirectory(Files.createDirectories(logs.resolve("gpu")), "cluster-")
    val home = Distribution.of(SparkHomes.of(spark), folder.resolve("spark"))
    val found = (0 until gpus).mkString("\"", "\",\"", "\"")
    val discovery = folder.resolve("gpus.sh")
    Files.writeString(discovery, s"""echo '{"name":"gpu","addresses":[$found]}'""")
    assert(discovery.toFile.setExecutable(true))
    val port = Local.freePort()
    val resource = "-Dspark.worker.resource.gpu"
    val environment = Map(
      "SPARK_HOME" -> home.toString,
      "SPARK_SCALA_VERSION" -> SparkHome.SCALA_VERSION,
      "MASTER_PORT" -> port.toString,
      "CORES" -> (cores * Executors).toString,
      "MEMORY" -> (if (isSmoke) "2g" else "16g"),
      "SPARK_WORKER_OPTS" ->
        (if (gpus == 0) "" else s"$resource.amount=$gpus $resource.discoveryScript=$discovery"))
    val start = Distribution.repository.resolve("examples/standalone/start.sh").toString
    val process = Distribution.process(Seq("bash", start), folder, "cluster", environment).start()
    sys.addShutdownHook(Distribution.end(process))
    Bounded.until(s"a master, see $folder", 60.seconds) {
      process.isAlive && Try(new Socket("127.0.0.1", port).close()).isSuccess
    }
    s"spark://127.0.0.1:$port"
  }

  /** What a user would submit: RAPIDS, the two keys of README.md, and what `settings` says else. */
  def submission(mainClass: String, settings: Map[String, String], executors: Int): Submission =
    new Submission(
      master,
      mainClass,
      installation.applicationJar,
      Seq.empty[Path].asJava,
      jars(installation.zerohopJar).asJava,
      "2g",
      (shape(executors) ++ accelerator(executors) ++ settings).asJava,
      Seq(logs.toString, executors.toString).asJava)

  /** What driver and executors have on their class path, with such a jar of ours. */
  def classPath(zerohop: Path): String = jars(zerohop).mkString(File.pathSeparator)

  private def jars(zerohop: Path): Seq[Path] = rapids ++ Seq(zerohop) ++ suiteJars

  /** More executors than [[Executors]] share the cores of those. */
  private def shape(executors: Int): Map[String, String] = Map(
    "spark.executor.cores" -> (cores * Executors / executors).toString,
    "spark.cores.max" -> (cores * Executors).toString,
    "spark.shuffle.manager" -> "io.zerohop.spark.ZerohopShuffleManager",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.ui.enabled" -> "false") ++ ownFolder

  private def accelerator(executors: Int): Map[String, String] =
    if (isSmoke) Map("spark.executor.memory" -> "512m")
    else Map("spark.plugins" -> Plugins, "spark.executor.memory" -> s"${8 / executors}g") ++
      (if (gpus >= executors) OwnGpu else sharedGpu(executors))

  private val OwnGpu = Map(
    "spark.executor.resource.gpu.amount" -> "1",
    "spark.task.resource.gpu.amount" -> "0.01")

  // Nobody asks Spark for a GPU then, and RAPIDS takes the one that it finds.
  private def sharedGpu(executors: Int) = Map(
    "spark.zerohop.device.pool.size" -> "4g",
    "spark.rapids.memory.gpu.allocFraction" -> (0.6 / executors / share).toString,
    "spark.rapids.memory.gpu.minAllocFraction" -> "0.01")

  /**
   * Of runs side by side two applications may have the same id where Spark 3.5 gives it, which has
   * no `spark.deploy.appIdPattern`, and the suites look at all that lies in an application's folder.
   */
  private def ownFolder: Map[String, String] =
    option("socketDir").map("spark.zerohop.socket.dir" -> _).toMap

  /** How many runs share the GPU at a time. */
  private def share: Int = option("share").fold(1)(_.toInt)

  def paths(list: String): Seq[Path] =
    list.split(File.pathSeparator).filter(_.nonEmpty).map(Paths.get(_)).toSeq

  private def property(name: String): String = sys.props(s"zerohop.test.$name")
}
