package io.zerohop.spark.support

import java.nio.file.{Files, Paths}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.sql.SparkSession
import org.apache.spark.zerohop.SparkInternals

/**
 * A real local-cluster: executors are JVMs of their own. Owns the Spark session; one at a time.
 *
 * @param executors how many, with one core each
 * @param master a standalone master with as many workers, or none for a local-cluster
 */
final class Cluster(
    val executors: Int,
    settings: Map[String, String],
    master: Option[String] = None)
    extends AutoCloseable {
  val spark: SparkSession = {
    val conf = new SparkConf()
      .setMaster(master.getOrElse(s"local-cluster[$executors,1,1024]"))
      .setAppName("zerohop-faults")
      .setAll(Cluster.Defaults ++ settings)
    SparkSession.builder().config(conf).getOrCreate()
  }

  val sc: SparkContext = spark.sparkContext

  awaitExecutors()

  /** Waits until as many executors as asked for are registered, replacements included. */
  def awaitExecutors(count: Int = executors): Unit =
    Bounded.until(s"$count executors", 90.seconds) {
      SparkInternals.executorIds(sc).size == count && pids.size == count
    }

  /** Process ids of the executors, by executor id. */
  def pids: Map[String, Long] = {
    val registered = SparkInternals.executorIds(sc).toSet
    Cluster.executorProcesses.filter { case (id, _) => registered(id) }
  }

  /** SIGKILL. Returns when the process is gone, which the driver may not have noticed yet. */
  def kill(executorId: String): Unit = Cluster.kill(pids(executorId))

  /** Runs a job under a limit; an overdue job is cancelled after all stacks are written. */
  def run[T](what: String, limit: FiniteDuration = 120.seconds)(job: => T): T =
    try Bounded(what, limit)(job)
    finally sc.cancelAllJobs()

  /** Runs a job and returns with its result what its tasks reported. */
  def counted[T](what: String)(job: => T): (T, PathBytes) = {
    val bytes = new PathBytes
    sc.addSparkListener(bytes)
    try {
      val result = run(what)(job)
      Cluster.drain(sc)
      (result, bytes)
    } finally sc.removeSparkListener(bytes)
  }

  /** A gauge of Zerohop's metrics, by executor; an executor that never shuffled has none. */
  def gauges(name: String): Map[String, Long] = {
    val found = sc.parallelize(0 until executors * 8, executors * 8).mapPartitions { _ =>
      Thread.sleep(20)
      SparkInternals.gauge("zerohop", name).map((SparkEnv.get.executorId, _)).iterator
    }
    run(s"gauge $name")(found.collect()).toMap
  }

  /** Drops every shuffle and asserts that no executor keeps a byte or a lease of one. */
  def assertNothingHeld(): Unit = {
    SparkInternals.shuffleIds(sc).foreach(SparkInternals.removeShuffle(sc, _))
    for (name <- Seq("leases.open", "pool.used.bytes")) {
      var last = Map.empty[String, Long]
      Bounded.until(s"$name back to 0, now $last", 60.seconds) {
        last = gauges(name)
        last.nonEmpty && last.values.forall(_ == 0)
      }
    }
  }

  override def close(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }
}

object Cluster {
  private val Defaults = Map(
    "spark.executor.memory" -> "512m",
    "spark.executor.extraJavaOptions" ->
      s"-Dzerohop.test.target=${sys.props("zerohop.test.target")}",
    "spark.zerohop.pool.size" -> "256m",
    "spark.zerohop.segment.size" -> "32m",
    "spark.zerohop.write.buffer" -> "4m",
    "spark.default.parallelism" -> "8",
    "spark.sql.shuffle.partitions" -> "8",
    "spark.locality.wait" -> "0",
    "spark.shuffle.io.maxRetries" -> "1",
    "spark.shuffle.io.retryWait" -> "200ms",
    "spark.deploy.maxExecutorRetries" -> "-1",
    "spark.task.maxFailures" -> "8")

  def withCluster[T](executors: Int, settings: (String, String)*)(body: Cluster => T): T = {
    val cluster = new Cluster(executors, settings.toMap)
    try body(cluster)
    finally cluster.close()
  }

  /** Executor JVMs that this process has started and that still run, by executor id. */
  def executorProcesses: Map[String, Long] =
    ProcessHandle.current.children.iterator.asScala.flatMap { child =>
      val arguments = Try(Files.readString(Paths.get(s"/proc/${child.pid}/cmdline"))).getOrElse("")
      val words = arguments.split('\u0000').toSeq
      val at = words.indexOf("--executor-id")
      if (words.exists(_.endsWith("CoarseGrainedExecutorBackend")) && at >= 0) {
        Some(words(at + 1) -> child.pid)
      } else {
        None
      }
    }.toMap

  def kill(pid: Long): Unit = {
    ProcessHandle.of(pid).ifPresent { process => process.destroyForcibly(); () }
    Bounded.until(s"end of process $pid", 20.seconds)(!ProcessHandle.of(pid).isPresent)
  }

  private def drain(sc: SparkContext): Unit = SparkInternals.awaitListeners(sc)
}
