package io.zerohop.spark.operation

import java.lang.management.ManagementFactory
import java.nio.file.Files
import java.util.concurrent.atomic.LongAdder
import javax.management.ObjectName

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import io.zerohop.spark.metrics.Metric
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Http, Local, RunBy}
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.zerohop.SparkInternals
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** The dashboard, and all that docs/metrics.md names for Prometheus, on a running application. */
@RunBy.Ui
class DashboardSuite extends AnyFunSuite with BeforeAndAfterAll {
  private val folder = Observed.files
  private val json = new ObjectMapper()
  private val read = new LongAdder
  private var sc: SparkContext = _

  /** Spark's own count of what this suite's tasks read in place. */
  private val taskMetrics = new SparkListener {
    override def onTaskEnd(end: SparkListenerTaskEnd): Unit =
      read.add(end.taskMetrics.shuffleReadMetrics.localBytesRead)
  }

  override def beforeAll(): Unit = if (ManagerUnderTest.isZerohop) {
    sc = Observed.start("256m")
    sc.addSparkListener(taskMetrics)
    shuffle()
  }

  override def afterAll(): Unit = if (sc != null) sc.stop()

  test("executors expose the metrics of the page, and no others") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no source zerohop")
    val expected = DashboardSuite.exposed
    val names = beans().map(_.getKeyProperty("name")).map(_.split("\\.zerohop\\.", 2)(1))
    assert(names.toSet === expected)
  }

  test("Spark's task metrics have the same bytes as the source") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no source zerohop")
    SparkInternals.awaitListeners(sc)
    val counted = exposed().collectFirst {
      case (name, value) if name.endsWith("_zerohop_local_bytes_Count") => value.toLong
    }
    assert(counted.contains(read.sum))
    assert(read.sum > 0)
  }

  test("the rule for the JMX exporter takes each metric, by the name that the dashboard has") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no source zerohop")
    val rule = "- pattern: '(.+)'".r
      .findFirstMatchIn(Files.readString(folder.resolve("jmx-exporter.yml"))).get.group(1).r
    val names = beans().map { bean =>
      val (name, kind) = (bean.getKeyProperty("name"), bean.getKeyProperty("type"))
      val attribute = if (kind == "counters") "Count" else "Value"
      // As the exporter writes a bean's attribute before it looks for a rule.
      s"metrics<name=$name, type=$kind><>$attribute" match {
        case rule(app, executor, metric) =>
          assert((app, executor) === ((sc.applicationId, "driver")))
          DashboardSuite.prometheusName(metric)
      }
    }
    assert(names.toSet === onPage)
  }

  test("each expression of the dashboard names metrics of the application") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no source zerohop")
    val expressions = dashboard()
    assert(expressions.size > 10)
    for (expression <- expressions) {
      val names = DashboardSuite.namesIn(expression)
      assert(names.nonEmpty, expression)
      val known = Metric.values.map(metric => DashboardSuite.prometheusName(metric.key)).toSet
      assert(names.filterNot(known).isEmpty, expression)
      assert(names.exists(onPage), s"only a GPU has what $expression asks for")
    }
  }

  test("each expression of the dashboard returns data from a Prometheus") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no source zerohop")
    Local.require("prometheus")
    val prometheus = Prometheus.of(sc)
    try {
      Bounded.until("traffic in Prometheus", 60.seconds) {
        shuffle()
        prometheus.query("rate(zerohop_local_bytes[10s]) > 0").exists(_.nonEmpty)
      }
      for (expression <- dashboard()) {
        val ready = expression.replace("$app", ".*").replace("$__rate_interval", "10s")
        assert(prometheus.query(ready).exists(_.nonEmpty), s"$ready returns nothing")
      }
      assert(prometheus.query("count by (app, executor) (zerohop_peers)").get.map { result =>
        (result.at("/metric/app").asText, result.at("/metric/executor").asText)
      } === Seq((sc.applicationId.replace('-', '_'), "driver")))
    } finally prometheus.close()
  }

  /** What an executor without a GPU has, as Prometheus names it. */
  private def onPage: Set[String] =
    DashboardSuite.exposed.map(DashboardSuite.prometheusName)

  private def shuffle(): Unit = {
    val sums = sc.parallelize(1 to 100000, 4).map(n => (n % 1000, n.toLong)).reduceByKey(_ + _, 4)
    assert(sums.values.sum() === 5000050000.0)
  }

  /** The expressions of all panels, and what the choice of an application asks for. */
  private def dashboard(): Seq[String] = {
    val root = json.readTree(folder.resolve("zerohop.json").toFile)
    val panels = root.get("panels").elements.asScala.toSeq
    assert(panels.map(_.get("id").asInt).distinct.size === panels.size)
    val expressions = panels.flatMap(_.get("targets").elements.asScala).map(_.get("expr").asText)
    val choice = root.findValues("query").asScala.map(_.asText).collectFirst {
      case DashboardSuite.Choice(metric) => metric
    }
    expressions ++ choice
  }

  /** Names and values as Spark's servlet gives them. */
  private def exposed(): Map[String, String] =
    Http.get(sc.uiWebUrl.get + "/metrics/prometheus").linesIterator
      .filter(_.contains("_zerohop_"))
      .map(line => (line.takeWhile(_ != '{'), line.drop(line.lastIndexOf(' ') + 1)))
      .toMap

  /** What Spark's JmxSink shows of the source. */
  private def beans(): Seq[ObjectName] =
    ManagementFactory.getPlatformMBeanServer
      .queryNames(new ObjectName("metrics:*"), null)
      .asScala.toSeq
      .filter(_.getKeyProperty("name").startsWith(sc.applicationId + ".driver.zerohop."))
}

object DashboardSuite {
  private val Choice = raw"label_values\((\w+), app\)".r
  private val OfSome = Set(Metric.Owner.GPU, Metric.Owner.KEEPER)

  /** What an executor without a GPU or a keeper has, by the names of earlier releases as well. */
  def exposed: Set[String] =
    Metric.values.filterNot(metric => OfSome(metric.owner))
      .flatMap(metric => Seq(metric.key, metric.formerly)).filter(_.nonEmpty).toSet

  /** The names that files of docs/grafana give. */
  def prometheusName(metric: String): String = "zerohop_" + metric.replaceAll("[^a-zA-Z0-9]", "_")

  /** The metrics that an expression asks for, those of a pattern of names one by one. */
  def namesIn(expression: String): Set[String] =
    raw"zerohop_[a-z0-9_(|)]*[a-z0-9]".r.findAllIn(expression).flatMap(expand).toSet

  /** `a_(b|c)` is `a_b` and `a_c`. */
  private def expand(pattern: String): Seq[String] = {
    val open = pattern.indexOf('(')
    if (open < 0) Seq(pattern)
    else {
      val close = pattern.indexOf(')', open)
      for {
        one <- pattern.substring(open + 1, close).split('|').toSeq
        whole <- expand(pattern.substring(0, open) + one + pattern.substring(close + 1))
      } yield whole
    }
  }
}
