package io.zerohop.spark.gpu

import java.nio.file.{Files, Path, Paths}
import java.time.Duration
import java.util.Properties

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.cluster.{SparkApplication, SparkHome, Submission}
import io.zerohop.spark.support.ScenarioApplication

/**
 * A cluster that runs already and that `-Dzerohop.cluster` names. Nothing of its hosts is looked at
 * but by its applications; docs/cluster-suite.md says what it needs.
 */
object UserCluster {

  /** As spark-submit has it: `spark://HOST:PORT`, `k8s://...` or `yarn`. */
  lazy val master: Option[String] = GpuHost.option("cluster")

  def missing: Option[String] =
    if (master.isEmpty) Some("no cluster: -Dzerohop.cluster=MASTER names one") else None

  lazy val executors: Int = GpuHost.option("cluster.executors").fold(2)(_.toInt)

  /** Whether reports may name hosts. */
  lazy val showsHosts: Boolean = GpuHost.option("cluster.hosts").contains("true")

  /** Those of the user's file, which override the suite's own. */
  lazy val settings: Map[String, String] =
    GpuHost.option("cluster.conf").fold(Map.empty[String, String]) {
      file =>
        val properties = new Properties
        Using.resource(Files.newBufferedReader(Paths.get(file)))(properties.load(_))
        properties.asScala.map { case (key, value) => key -> value.trim }.toMap
    }

  def hasRapids: Boolean = settings.get("spark.plugins").exists(_.contains("SQLPlugin"))

  def trustsNetwork: Boolean =
    settings.get("spark.zerohop.ucx.trustedNetwork").contains("true")

  lazy val folder: Path =
    Files.createTempDirectory(Files.createDirectories(GpuHost.logs.resolve("cluster-suite")),
      "run-")

  /** Submits a driver program in client mode, and returns when its executors take tasks. */
  def start(name: String, more: Map[String, String]): ScenarioApplication = {
    val home = new SparkHome(Paths.get(sys.props("spark.test.home")))
    val log = folder.resolve(s"$name.err")
    val submission = this.submission(base ++ settings ++ more)
    new ScenarioApplication(SparkApplication.submit(name, home, submission, log), log).ready(
      StartLimit)
  }

  private def submission(conf: Map[String, String]): Submission = {
    val installation = GpuHost.installation
    // Executors are sent what their settings do not say to be with them.
    val sent = if (settings.contains(ExecutorPath)) Nil else Seq(installation.zerohopJar)
    val driver = Seq(installation.zerohopJar) ++ GpuHost.suiteJars ++
      settings.get("spark.driver.extraClassPath").toSeq.flatMap(GpuHost.paths)
    new Submission(
      master.get,
      GpuTestApp.getClass.getName.stripSuffix("$"),
      installation.applicationJar,
      (sent ++ GpuHost.suiteJars).asJava,
      driver.asJava,
      settings.getOrElse("spark.driver.memory", "1g"),
      (Map(ExecutorPath -> "") ++ conf).asJava,
      Seq(folder.toString, executors.toString, "elsewhere").asJava)
  }

  private def base: Map[String, String] = {
    val cores = settings.getOrElse("spark.executor.cores", "2")
    Map(
      "spark.executor.cores" -> cores,
      "spark.cores.max" -> (cores.toInt * executors).toString,
      "spark.executor.instances" -> executors.toString,
      "spark.plugins" -> "io.zerohop.spark.ZerohopPlugin",
      "spark.shuffle.manager" -> "io.zerohop.spark.ZerohopShuffleManager",
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      "spark.sql.shuffle.partitions" -> "16",
      "spark.task.maxFailures" -> "8",
      "spark.ui.enabled" -> "false")
  }

  /** A busy cluster gives executors late. */
  private val StartLimit = Duration.ofMinutes(5)

  private val ExecutorPath = "spark.executor.extraClassPath"
}
