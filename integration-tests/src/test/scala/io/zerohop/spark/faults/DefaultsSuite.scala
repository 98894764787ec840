package io.zerohop.spark.faults

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, RunBy}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerTaskEnd}
import org.apache.spark.sql.functions.{count, sum}
import org.apache.spark.zerohop.SparkInternals

/**
 * What the other suites set to be quick is left alone here: the size of pools and segments, retries
 * and their pauses, locality, the number of partitions, broadcasts, adaptive execution.
 */
@RunBy.Faults
class DefaultsSuite extends ClusterSuite {
  override protected def shape: Map[String, String] = Cluster.Plain

  test("nothing is set but the manager") {
    val set = cluster.sc.getConf.getAll.toMap.keySet.filter { key =>
      Seq("spark.sql.", "spark.shuffle.", "spark.zerohop.", "spark.locality.", "spark.task.")
        .exists(key.startsWith)
    }
    assert((set -- DefaultsSuite.Unasked) === Set("spark.shuffle.manager"))
  }

  test("joins and aggregations over 200 partitions") {
    val spark = cluster.spark
    val (rows, bytes) = cluster.counted("a join at the defaults") {
      val facts = spark.range(0, 400000, 1, 8).selectExpr("id", "id % 20000 AS k")
      val large = spark.range(0, 200000, 1, 8).selectExpr("id AS r", "repeat('x', 200) AS text")
      val small = spark.range(0, 20).selectExpr("id AS s", "id * 10 AS tens")
      facts.join(large, facts("k") === large("r"))
        .join(small, facts("k") % 20 === small("s"))
        .groupBy("k").agg(count("*").as("n"), sum("tens").as("t"))
        .agg(count("*"), sum("n"), sum("t"))
        .collect().toSeq
    }
    assert(rows.map(_.toSeq) === Seq(Seq(20000L, 400000L, 400000L * 95)))
    if (ManagerUnderTest.isZerohop) {
      assert(bytes.bytes("staged") === 0)
      assert(bytes.bytes("local") + bytes.bytes("peer") > 0)
    }
    forget()
  }

  test("executors listen where Spark's listen, and nowhere else") {
    val ports =
      cluster.sc.parallelize(1 to 8, 8).mapPartitions(_ => Iterator(Listening.ports())).collect()
    // One serves blocks; nobody has said that the network is trusted.
    assert(ports.map(_.size).toSet === Set(1), ports.toSeq)
  }

  test("tasks keep the driver no more of Zerohop's than the paths that their bytes took") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle counts no paths")
    val kept = new ConcurrentLinkedQueue[(String, Set[String])]
    val listener = new SparkListener {
      // What is told late of earlier jobs does not count.
      private val stages = ConcurrentHashMap.newKeySet[Int]()

      override def onJobStart(start: SparkListenerJobStart): Unit =
        start.stageIds.foreach(stages.add)

      override def onTaskEnd(end: SparkListenerTaskEnd): Unit =
        if (stages.contains(end.stageId)) kept.add((end.taskType,
            end.taskInfo.accumulables.flatMap(_.name).filter(_.startsWith("zerohop.")).toSet))
    }
    cluster.sc.addSparkListener(listener)
    try cluster.counted("a shuffle whose tasks are looked at") {
        assert(Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) =>
          ()) === Workload.expected)
      }
    finally cluster.sc.removeSparkListener(listener)
    val tasks = kept.asScala.toSeq
    assert(tasks.filter(_._1 == "ShuffleMapTask").flatMap(_._2) === Nil)
    val readers = tasks.filter(_._1 == "ResultTask").map(_._2)
    assert(readers.size === Workload.Reducers)
    assert(
      readers.forall(names =>
        names.nonEmpty && names.subsetOf(Set("zerohop.local.bytes", "zerohop.peer.bytes"))))
    forget()
  }

  test("an owner that is killed while it is read") {
    val fault = Fault.in(folder)
    cluster.awaitExecutors()
    val (answer, _) = cluster.counted("owner killed at the defaults") {
      Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ())) { (partition, record) =>
        if (partition == 1 && record == 100) fault.killOthers()
      }
    }
    assert(fault.happened)
    assert(answer === Workload.expected)
    cluster.awaitExecutors()
    forget()
  }

  private def forget(): Unit =
    if (ManagerUnderTest.isZerohop) cluster.assertNothingHeld()
    else SparkInternals.shuffleIds(cluster.sc).foreach(SparkInternals.removeShuffle(cluster.sc, _))
}

/** What this process listens at. */
private object Listening {
  private val Listens = "0A"

  /** Local addresses and ports of TCP, as Linux writes them. */
  def ports(): Set[String] = {
    val own = fileNames(Paths.get("/proc/self/fd")).flatMap { name =>
      Try(Files.readSymbolicLink(Paths.get("/proc/self/fd", name)).toString).toOption
    }.toSet
    Seq("tcp", "tcp6").map(Paths.get("/proc/self/net", _)).filter(Files.isReadable(_)).flatMap {
      table =>
        Files.readAllLines(table).asScala.map(_.trim.split("\\s+"))
          .filter(fields => fields(3) == Listens && own(s"socket:[${fields(9)}]")).map(_(1))
    }.toSet
  }

  private def fileNames(folder: Path): Seq[String] =
    Option(folder.toFile.list()).toSeq.flatMap(_.toSeq)
}

private object DefaultsSuite {

  /** What Spark itself sets for a cluster on one machine, and what the manager sets for users. */
  val Unasked: Seq[String] = Seq(
    "spark.sql.warehouse.dir",
    "spark.shuffle.readHostLocalDisk",
    "spark.shuffle.checksum.enabled")
}
