package io.zerohop.spark.gpu

import java.io.File
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.cluster.{Installation, Submission}

/**
 * The GPU host that `benchmarks/gpu/rapids.sh faults` has made ready: a standalone cluster,
 * our jars and RAPIDS. Two executors in any case, each on a GPU of its own or, where there is one
 * only, both on that. Without RAPIDS it is a smoke run: the same applications on CPU rows.
 */
object GpuHost {
  val Executors = 2

  val Plugins = "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin"

  /** Why nothing of it can run here; none if it can. */
  lazy val missing: Option[String] =
    if (sys.props.contains("zerohop.test.master")) None
    else Some("no GPU host: `benchmarks/gpu/rapids.sh faults` runs this there")

  /** Why executors cannot read each other by UCX; none if they can. */
  def missingUcx: Option[String] =
    if (ucxLibraries.nonEmpty) None
    else Some("no UCX: LIBUCX names a folder that has a libucx with CUDA in lib")

  /** Where executors find libucx, beside what the host has; empty for nowhere. */
  def ucxLibraries: String = property("libucx")

  /** Whether RAPIDS is left out. */
  def isSmoke: Boolean = rapids.isEmpty

  lazy val installation: Installation = Installation.in(Paths.get(property("project")))

  /** Its Spark's version. */
  lazy val spark: String =
    Using.resource(Files.list(installation.sparkHome.jars))(
      _.iterator.asScala.map(_.getFileName.toString).collectFirst {
        case SparkCore(version) => version
      }.get)

  private val SparkCore = raw"spark-core_[\d.]+-(.+)\.jar".r

  def logs: Path = Paths.get(property("target"))

  private def master: String = property("master")

  private def gpus: Int = property("gpus").toInt

  private def rapids: Seq[Path] = paths(property("rapids"))

  /** What a user would submit: RAPIDS, the two keys of README.md, and what `settings` says else. */
  def submission(mainClass: String, settings: Map[String, String]): Submission =
    new Submission(
      master,
      mainClass,
      installation.applicationJar,
      Seq.empty[Path].asJava,
      jars(installation.zerohopJar).asJava,
      "2g",
      (shape ++ accelerator ++ settings).asJava,
      Seq(logs.toString, Executors.toString).asJava)

  /** What driver and executors have on their class path, with such a jar of ours. */
  def classPath(zerohop: Path): String = jars(zerohop).mkString(File.pathSeparator)

  private def jars(zerohop: Path): Seq[Path] = rapids ++ Seq(zerohop) ++ paths(property("suites"))

  private def shape: Map[String, String] = Map(
    "spark.executor.cores" -> property("cores"),
    "spark.cores.max" -> (property("cores").toInt * Executors).toString,
    "spark.shuffle.manager" -> "io.zerohop.spark.ZerohopShuffleManager",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.ui.enabled" -> "false") ++ ownFolder

  private def accelerator: Map[String, String] =
    if (isSmoke) Map("spark.executor.memory" -> "512m")
    else Map("spark.plugins" -> Plugins, "spark.executor.memory" -> "4g") ++
      (if (gpus >= Executors) OwnGpu else sharedGpu)

  private val OwnGpu = Map(
    "spark.executor.resource.gpu.amount" -> "1",
    "spark.task.resource.gpu.amount" -> "0.01")

  // Nobody asks Spark for a GPU then, and RAPIDS takes the one that it finds.
  private def sharedGpu = Map(
    "spark.zerohop.device.pool.size" -> "4g",
    "spark.rapids.memory.gpu.allocFraction" -> (0.3 / share).toString,
    "spark.rapids.memory.gpu.minAllocFraction" -> "0.01")

  /**
   * Of runs side by side two applications may have the same id where Spark 3.5 gives it, which has
   * no `spark.deploy.appIdPattern`, and the suites look at all that lies in an application's folder.
   */
  private def ownFolder: Map[String, String] =
    Seq(property("socketDir")).filter(_.nonEmpty).map("spark.zerohop.socket.dir" -> _).toMap

  /** How many runs share the GPU at a time. */
  private def share: Int = property("share").toInt

  private def paths(list: String): Seq[Path] =
    list.split(File.pathSeparator).filter(_.nonEmpty).map(Paths.get(_)).toSeq

  private def property(name: String): String = sys.props(s"zerohop.test.$name")
}
