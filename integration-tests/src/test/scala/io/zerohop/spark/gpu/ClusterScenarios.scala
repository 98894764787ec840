package io.zerohop.spark.gpu

import java.net.InetAddress
import java.util.Locale
import java.util.concurrent.ConcurrentLinkedQueue

import scala.concurrent.duration._
import scala.sys.process._
import scala.util.{Properties, Try}

import io.zerohop.spark.doctor.SparkApplication
import io.zerohop.spark.faults.Workload
import io.zerohop.spark.support.Cluster
import org.apache.spark.{HashPartitioner, SparkEnv, TaskContext}
import org.apache.spark.scheduler.{
  SparkListener, SparkListenerExecutorAdded, SparkListenerExecutorRemoved
}
import org.apache.spark.zerohop.SparkInternals

/** What a cluster is, as the application sees it, and how it grows and shrinks under a job. */
final class ClusterScenarios(cluster: Cluster) {
  import ClusterScenarios._

  private val sc = cluster.sc

  val all: Map[String, () => Map[String, Any]] =
    Map("describe" -> (() => describe()), "resized" -> (() => resized()))

  /** Versions, executors with their nodes and GPUs, and the doctor's report without rates. */
  private def describe(): Map[String, Any] = {
    val doctor = new SparkApplication(sc, false).examine()
    val executors = cluster.onEach("an executor's host") { () => here() }
    Map(
      "spark" -> s"${sc.version} (Scala ${Properties.versionNumberString})",
      "java" -> sys.props("java.version"),
      "driver_names" -> names,
      "settings" -> sc.getConf.getAll.toMap.filter { case (key, _) => isShown(key) },
      "doctor" -> doctor.json,
      "executors" -> executors.toSeq.sortBy(_._1.toInt).map { case (id, has) =>
        has + ("id" -> id)
      })
  }

  /** A job that wants all executors, then one, then others again, under dynamic allocation. */
  private def resized(): Map[String, Any] = {
    val all = cluster.executors
    val changes = new Changes
    sc.addSparkListener(changes)
    try {
      val (answer, seen) = cluster.counted("a job that grows and shrinks", 4.minutes) {
        val narrow = Workload.shuffled(sc) { (_, record) =>
          if (record == 0) awaitExecutors(_ >= all)
        }
          .coalesce(1, shuffle = true)
          .mapPartitions { records =>
            awaitExecutors(_ < all)
            records
          }
        Workload.answer(narrow.partitionBy(new HashPartitioner(Workload.Reducers))) { (_, record) =>
          if (record == 0) awaitExecutors(_ >= all)
        }
      }
      Map(
        "equal" -> (answer == Workload.expected),
        "added" -> changes.added.size,
        "removed" -> changes.removed.size,
        "failed_tasks" -> seen.failedTasks,
        "map_tasks" -> seen.finishedMapTasks) ++ seen.facts
    } finally sc.removeSparkListener(changes)
  }
}

object ClusterScenarios {

  /** Waits in a task until there are as many executors as it wants, or a minute has passed. */
  def awaitExecutors(enough: Int => Boolean): Unit = {
    val end = 1.minute.fromNow
    while (!enough(SparkInternals.executorsSeen) && end.hasTimeLeft()) Thread.sleep(100)
  }

  /** Counts executors that came and went. */
  private final class Changes extends SparkListener {
    val added = new ConcurrentLinkedQueue[String]
    val removed = new ConcurrentLinkedQueue[String]

    /** Those of the beginning may still be on their way. */
    override def onExecutorAdded(event: SparkListenerExecutorAdded): Unit =
      if (!removed.isEmpty) {
        added.add(event.executorId)
        ()
      }

    override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit = {
      removed.add(event.executorId)
      ()
    }
  }

  /** Of the executor that runs the calling task. */
  private def here(): Map[String, Any] = Map(
    "host" -> SparkEnv.get.blockManager.blockManagerId.host,
    "names" -> names,
    "cores" -> SparkEnv.get.conf.get("spark.executor.cores", "unknown"),
    "task_gpus" -> TaskContext.get().resources().get("gpu").fold("")(_.addresses.mkString(" ")),
    "gpus" -> gpus)

  /** What reports leave out: names of this host, and its user's folder. */
  private def names: Seq[String] =
    Try(InetAddress.getLocalHost).toOption.toSeq
      .flatMap(host => Seq(host.getCanonicalHostName, host.getHostName, host.getHostAddress)) ++
      sys.props.get("user.home")

  private def gpus: Seq[String] = {
    val query = "--query-gpu=name,memory.total,driver_version"
    val asked = Seq("timeout", "10", "nvidia-smi", query, "--format=csv,noheader")
    Try(asked.!!(ProcessLogger(_ => ())).linesIterator.map(_.trim).toSeq).getOrElse(Nil)
  }

  private def isShown(key: String): Boolean = {
    val prefixes = Seq("zerohop", "rapids", "shuffle", "executor.", "task.", "plugins", "sql",
      "dynamicAllocation", "decommission", "storage.decommission", "speculation")
    prefixes.exists(prefix => key.startsWith(s"spark.$prefix")) &&
    !Seq("extraClassPath", "extraJavaOptions", "executorEnv").exists(key.contains) &&
    !key.toLowerCase(Locale.ROOT).matches(".*(secret|password|token|credential|key).*")
  }
}
