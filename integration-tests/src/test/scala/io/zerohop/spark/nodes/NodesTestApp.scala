package io.zerohop.spark.nodes

import java.nio.file.{Path, Paths}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import io.zerohop.spark.faults.{Workload => SmallShuffle}
import io.zerohop.spark.support.{Bounded, Cluster, ScenarioServer}
import io.zerohop.workload.{ResultFile, TpchData, Workload}
import org.apache.spark.{SparkConf, SparkEnv, SparkException}
import org.apache.spark.rdd.RDD
import org.apache.spark.zerohop.SparkInternals

/** The driver program of the tests on two nodes; a question is a scenario and its arguments. */
object NodesTestApp {

  /** @param args folder for what a hung wait leaves behind, and the number of executors */
  def main(args: Array[String]): Unit = {
    System.setProperty("zerohop.test.target", args(0))
    val conf = new SparkConf
    val app = new NodesTestApp(
      new Cluster(args(1).toInt, conf.getAll.toMap, Some(conf.get("spark.master"))))
    ScenarioServer.serve(question => app.answer(question.split(' ').toSeq))
  }
}

final class NodesTestApp(cluster: Cluster) {

  /**
   * Keeps what the driver would collect as garbage, so that nobody but [[settle]] drops a shuffle:
   * one that is dropped while an executor that was taken for dead has no block manager stays there.
   */
  private var transfers = List.empty[RDD[_]]

  private var kept: RDD[Transfer.Row] = _

  /** 64 MiB. */
  private val whole = Transfer(2048)

  def answer(question: Seq[String]): Map[String, Any] = question match {
    case Seq("application") => Map("id" -> cluster.sc.applicationId)
    case Seq("transfer", middle) => transfer(Paths.get(middle))
    case Seq("keep", middle) => keep(Paths.get(middle))
    case Seq("awaitKept") => awaitKept()
    case Seq("executors") => SparkInternals.executorIds(cluster.sc).map(_ -> 1).toMap
    case Seq("reliable") => Map("reliable" -> SparkInternals.isReliable(cluster.sc))
    case Seq("readKept") => readKept()
    case Seq("shuffles", count) => shuffles(count.toInt)
    case Seq("footprint") => footprint()
    case Seq("settle") => settle()
    case Seq("tables", folder) =>
      TpchData.register(cluster.spark, folder)
      Map.empty
    case Seq("query", name, file) => query(name, Paths.get(file))
    case Seq("gauge", name) => cluster.gauges(name)
    case Seq("ports") =>
      cluster.onEach("block port")(() => SparkEnv.get.blockManager.blockManagerId.port)
  }

  /** Right, wrong or failed, which for a fault is allowed if Spark says why. */
  private def transfer(middle: Path): Map[String, Any] =
    try {
      val transfer = whole.rdd(cluster.sc, middle)
      transfers ::= transfer
      val (rows, seen) = cluster.counted("transfer")(whole.rows(transfer))
      val outcome = if (rows == whole.expected) "right" else "wrong"
      Map("outcome" -> outcome, "failed_tasks" -> seen.failedTasks) ++ seen.facts
    } catch { case e: SparkException => Map("outcome" -> "failed", "message" -> e.getMessage) }

  /** Runs map stages of a transfer until keepers of both nodes have all outputs of one. */
  private def keep(middle: Path): Map[String, Any] = {
    Bounded.until("a transfer that is kept", 60.seconds) {
      kept = whole.rdd(cluster.sc, middle)
      val id = cluster.run("the map stage")(SparkInternals.runMapStage(cluster.sc, kept))
      SparkInternals.mapOutputOwners(id).forall(_.startsWith("keeper-"))
    }
    Map.empty
  }

  /**
   * Waits until new keepers have the memory of all executors, and so what that holds already: a
   * small shuffle lies in the same segments.
   */
  private def awaitKept(): Map[String, Any] = {
    Bounded.until("a shuffle that is kept", 60.seconds) {
      val small = SmallShuffle.shuffled(cluster.sc)((_, _) => ())
      val id = cluster.run("the map stage")(SparkInternals.runMapStage(cluster.sc, small))
      val owners = SparkInternals.mapOutputOwners(id)
      SparkInternals.removeShuffle(cluster.sc, id)
      owners.forall(_.startsWith("keeper-"))
    }
    Map.empty
  }

  /** Reads what was kept, and counts what was computed again for that. */
  private def readKept(): Map[String, Any] = {
    val (rows, seen) = cluster.counted("read what was kept")(whole.rows(kept))
    val outcome = if (rows == whole.expected) "right" else "wrong"
    val again = Map("map_tasks" -> seen.finishedMapTasks, "failed_tasks" -> seen.failedTasks)
    Map("outcome" -> outcome, "fetch_failures" -> seen.fetchFailures.size) ++ again ++ seen.facts
  }

  /** So many small ones, each dropped behind its job, as a driver that collects garbage does. */
  private def shuffles(count: Int): Map[String, Any] = {
    val (answers, seen) = cluster.counted(s"$count shuffles") {
      (1 to count).map { _ =>
        val shuffled = SmallShuffle.shuffled(cluster.sc)((_, _) => ())
        val answer = SmallShuffle.answer(shuffled)((_, _) => ())
        SparkInternals.removeShuffle(cluster.sc, SparkInternals.shuffleOf(shuffled).shuffleId)
        answer
      }
    }
    val outcome = if (answers.forall(_ == SmallShuffle.expected)) "right" else "wrong"
    Map("outcome" -> outcome, "failed_tasks" -> seen.failedTasks) ++ seen.facts
  }

  /** Of each executor that holds no shuffle, see [[Footprint]]. */
  private def footprint(): Map[String, Any] = {
    settle()
    cluster.onEach("footprint")(() => Footprint.here()).flatMap { case (executor, has) =>
      has.map { case (name, value) => s"$executor $name" -> value }
    }
  }

  /** As if nothing had happened: all executors work, and none holds anything. */
  private def settle(): Map[String, Any] = {
    cluster.awaitExecutors()
    cluster.assertNothingHeld()
    transfers = Nil
    Map.empty
  }

  private def query(name: String, file: Path): Map[String, Any] = {
    val workload = Workload.named(name)
    workload.settings.asScala.foreach(cluster.spark.sql(_))
    val (rows, seen) = cluster.counted(name)(cluster.spark.sql(workload.query).collectAsList())
    ResultFile.write(file, rows)
    seen.facts + ("rows" -> rows.size)
  }
}
