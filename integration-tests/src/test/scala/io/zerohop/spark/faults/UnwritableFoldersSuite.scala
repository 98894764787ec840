package io.zerohop.spark.faults

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Cluster, RunBy}
import io.zerohop.spark.ui.ShuffleReportEvent
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.scalatest.funsuite.AnyFunSuite

/**
 * Executors that cannot write where they would, as with a read-only root file system: nobody, root
 * included, makes a file in /proc. Their blocks are in files, and they say once what would help.
 */
@RunBy.Faults
class UnwritableFoldersSuite extends AnyFunSuite {
  private val JavaOptions = "spark.executor.extraJavaOptions"

  /** Executors log as users' do, to stderr. */
  private val logging =
    s"${Cluster.Plain(JavaOptions)} -Dlog4j2.configurationFile=${sys.env("SPARK_HOME")}/conf/log4j2.properties"

  test("no folder for the socket") {
    run("spark.zerohop.socket.dir", "spark.zerohop.socket.dir" -> "/proc/zerohop")
  }

  test("no temporary folder for the native library") {
    run(
      "-Djava.io.tmpdir",
      JavaOptions -> s"$logging -Djava.io.tmpdir=/proc",
      // Spark's default, zstd, unpacks a library there as well, and fails.
      "spark.shuffle.mapStatus.compression.codec" -> "lz4")
  }

  private def run(key: String, settings: (String, String)*): Unit = {
    assume(ManagerUnderTest.isZerohop, "sort shuffle needs neither")
    Cluster.withCluster(2, (JavaOptions -> logging) +: settings: _*) { cluster =>
      val advised = new Advised
      cluster.sc.addSparkListener(advised)
      val answer = cluster.run("a shuffle through files") {
        Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ())
      }
      assert(answer === Workload.expected)
      assert(cluster.gauges("pool.host.limit.bytes") === Map.empty)
      def said(log: Seq[String]) = log.filter(_.contains("keeps shuffle blocks in files"))
      Bounded.until("the lines are in the logs", 30.seconds)(
        logs(cluster.sc.applicationId).forall(said(_).nonEmpty))
      for (log <- logs(cluster.sc.applicationId)) {
        assert(said(log).size === 1, log.mkString("\n"))
        assert(said(log).head.contains(key))
      }
      Bounded.until("both executors say so in the tab, too", 30.seconds)(
        advised.executors.size == 2)
      assert(advised.all.forall(_.contains(key)), advised.all)
    }
  }

  /** What executors report of their start, by executor. */
  private final class Advised extends SparkListener {
    private val found = new ConcurrentHashMap[String, String]

    def executors: Set[String] = found.keySet.asScala.toSet

    def all: Seq[String] = found.values.asScala.toSeq

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case told: ShuffleReportEvent =>
        for (line <- told.report.advice.asScala if line.check == "start") {
          found.put(told.report.executorId, s"${line.what} ${line.remedy}")
        }
      case _ =>
    }
  }

  /** What each executor has said, line by line; in tests each worker has a temporary folder. */
  private def logs(application: String): Seq[Seq[String]] = {
    val all = for {
      worker <- list(Paths.get(sys.props("java.io.tmpdir")))
      executors = worker.resolve(application) if Files.isDirectory(executors)
      log <- list(executors).map(_.resolve("stderr")) if Files.exists(log)
    } yield Files.readAllLines(log).asScala.toSeq
    assert(all.size === 2)
    all
  }

  private def list(folder: Path): Seq[Path] =
    Using.resource(Files.list(folder))(_.iterator.asScala.toVector)
}
