package io.zerohop.spark.faults

import java.nio.file.{Files, Path}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import io.zerohop.spark.support.{Bounded, Cluster, HostProcess, Leftover}
import org.apache.spark.rdd.RDD
import org.apache.spark.zerohop.SparkInternals

/** A cluster with a keeper, whose tests see its process and what it holds. */
abstract class KeeperClusterSuite extends ClusterSuite {
  private var keepers = Set.empty[HostProcess]

  override protected def settings: Map[String, String] = Map(
    "spark.zerohop.keeper" -> "true",
    "spark.zerohop.socket.dir" -> folder.resolve("s").toString)

  override protected def afterAll(): Unit = {
    keepers = keepers ++ running
    super.afterAll()
    Leftover.unless("no keeper")(!keepers.exists(_.lives))
  }

  /** A shuffle whose map outputs are all in the keeper. */
  protected def keptShuffle(): RDD[(Int, (Int, String))] = {
    if (await) cluster.awaitExecutors()
    var shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
    Bounded.until("a shuffle that is kept", 60.seconds) {
      shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
      val id = cluster.run("the map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
      val owners = SparkInternals.mapOutputOwners(id)
      keepers = keepers ++ running
      owners.size == Workload.Maps && owners.forall(_.startsWith("keeper-"))
    }
    shuffled
  }

  protected def assertReadAsItIs(shuffled: RDD[(Int, (Int, String))]): Unit = {
    val (answer, read) = cluster.counted("read what was left") {
      Workload.answer(shuffled)((_, _) => ())
    }
    assert(answer === Workload.expected)
    assert(read.finishedMapTasks === 0)
    assert(read.failedTasks === 0)
  }

  /** Returns when the driver gives it no more tasks, which would fail. */
  protected def killAndNotice(executor: String): Unit = {
    cluster.kill(executor)
    Bounded.until(s"loss of executor $executor", 30.seconds) {
      !SparkInternals.executorIds(cluster.sc).contains(executor)
    }
  }

  protected def youngest: String = cluster.pids.keys.maxBy(_.toInt)

  /** Processes that start keepers. */
  protected def starters: Set[Long] = cluster.pids.values.toSet

  /** The keepers that those have started. */
  protected def running: Set[HostProcess] =
    starters.flatMap { pid =>
      ProcessHandle.of(pid).map[Seq[Long]](_.children.iterator.asScala.map(_.pid).toSeq)
        .orElse(Nil)
    }.filter(HostProcess.words(_).contains("io.zerohop.spark.keeper.KeeperProcess"))
      .flatMap(HostProcess.of(_))

  /** Those that were seen while they held a shuffle, and live. */
  protected def living: Set[HostProcess] = keepers.filter(_.lives)

  protected def killKeepers(): Unit = Cluster.kill(living.map(_.pid).toSeq: _*)

  /** Sockets by which keepers serve what executors have left. */
  protected def left: Seq[Path] =
    Try(Using.resource(Files.walk(folder)) {
      _.iterator.asScala.filter(_.toString.endsWith(".left")).toVector
    }).getOrElse(Vector.empty)
}
