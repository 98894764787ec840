package io.zerohop.spark.operation

import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Cluster, Http, Local, RunBy}
import org.apache.spark.HashPartitioner
import org.scalatest.funsuite.AnyFunSuite

/** An executor with the JMX exporter's agent, by the files and the line of docs/metrics.md. */
@RunBy.Ui
class JmxExporterSuite extends AnyFunSuite {
  private val Line = raw"(zerohop_\w+)\{(.*)} (\S+)".r

  test("an executor's agent gives each metric by the name that the dashboard has") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no source zerohop")
    val port = Local.freePort()
    Cluster.withCluster(1,
      "spark.shuffle.manager" -> ManagerUnderTest.name,
      "spark.metrics.conf" -> Observed.files.resolve("metrics.properties").toString,
      "spark.executor.extraJavaOptions" ->
        s"-javaagent:$agent=127.0.0.1:$port:${Observed.files.resolve("jmx-exporter.yml")}",
      "spark.zerohop.pool.size" -> "64m") { cluster =>
      val rows = cluster.sc.parallelize(0 until 1000, 4).map(row => (row, row))
      assert(rows.partitionBy(new HashPartitioner(4)).count() === 1000)
      Bounded.until("the executor's metrics", 30.seconds)(
        Try(metrics(port)).toOption.exists(_.nonEmpty))
      val found = metrics(port)
      assert(found.keySet === DashboardSuite.exposed.map(DashboardSuite.prometheusName))
      val (labels, value) = found("zerohop_local_bytes")
      assert(labels.contains("app=\"" + cluster.sc.applicationId + "\""), labels)
      assert(labels.contains("executor=\"0\""), labels)
      assert(value > 0)
    }
  }

  private def metrics(port: Int): Map[String, (String, Double)] =
    Http.get(s"http://127.0.0.1:$port/metrics").linesIterator.collect {
      case Line(name, labels, value) => name -> ((labels, value.toDouble))
    }.toMap

  private def agent: Path =
    Using.resource(Files.list(Paths.get(sys.props("zerohop.test.target"), "jmx-exporter")))(
      _.iterator.asScala.toSeq.head)
}
