package io.zerohop.spark.browser

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.zerohop.spark.operation.{Observed, Prometheus}
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Local, RunBy}
import org.apache.spark.SparkContext
import org.scalatest.funsuite.AnyFunSuite

/**
 * The panels of the Grafana dashboard, drawn from its JSON with what a Prometheus beside an
 * application has: by uPlot, which Grafana draws time series with, since no Grafana is to be had
 * here. Titles, places, expressions and legends are the dashboard's; the frame is not Grafana's.
 */
@RunBy.Ui
class DashboardPictureSuite extends AnyFunSuite {
  // Long enough for each panel's rate, or for a picture that is looked at.
  private val Seconds = if (sys.props.get("zerohop.docs.write").contains("true")) 40 else 16
  private val target = Paths.get(sys.props("zerohop.test.target"))
  private val json = new ObjectMapper

  test("every panel of the dashboard has something to show") {
    assume(ManagerUnderTest.isZerohop, "the dashboard is Zerohop's")
    Local.require("chromium", "chromedriver", "prometheus")
    val sc = Observed.start("64m")
    try {
      Using.resource(Prometheus.of(sc)) { prometheus =>
        val end = Seconds.seconds.fromNow
        Bounded.until("a while of shuffles", 120.seconds) {
          shuffle(sc, 1 + 5 * (Seconds - end.timeLeft.toSeconds.toInt) / Seconds)
          end.isOverdue()
        }
        draw(panels(prometheus))
      }
    } finally sc.stop()
  }

  private def shuffle(sc: SparkContext, size: Int): Unit = {
    val rows = sc.parallelize(0 until 20000 * size, 8).map(n => (n % 1000, "x" * 200 + n))
    assert(rows.groupByKey(8).count() === 1000)
    ()
  }

  /** Each panel's title and place, and its series: a label, and seconds and values. */
  private def panels(prometheus: Prometheus): JsonNode = {
    val drawn = json.createArrayNode()
    val dashboard = json.readTree(Observed.files.resolve("zerohop.json").toFile)
    for (panel <- dashboard.get("panels").elements.asScala) {
      val to = drawn.addObject()
      to.put("title", panel.get("title").asText)
      to.put("unit", panel.at("/fieldConfig/defaults/unit").asText)
      to.set[JsonNode]("place", panel.get("gridPos"))
      val series = to.putArray("series")
      for (asked <- panel.get("targets").elements.asScala) {
        val expression =
          asked.get("expr").asText.replace("$app", ".*").replace("$__rate_interval", "5s")
        for (found <- prometheus.lately(expression, Seconds).get) {
          val one = series.addObject()
          one.put("label", label(asked.get("legendFormat").asText, found.get("metric")))
          one.set[JsonNode]("values", found.get("values"))
        }
      }
      assert(series.size > 0, panel.get("title"))
    }
    drawn
  }

  private def label(format: String, metric: JsonNode): String =
    raw"\{\{(\w+)\}\}".r.replaceAllIn(format, found => metric.path(found.group(1)).asText)

  private def draw(panels: JsonNode): Unit = {
    val folder = Files.createDirectories(target.resolve("browser"))
    val page = read("dashboard.html")
      .replace("/*uplot.css*/", Files.readString(uplot("uPlot.min.css")))
      .replace("/*uplot.js*/", Files.readString(uplot("uPlot.iife.min.js")))
      .replace("/*panels*/[]", json.writeValueAsString(panels))
    val file = Files.writeString(folder.resolve("dashboard.html"), page)
    Using.resource(new Browser) { browser =>
      browser.open(file.toUri.toString)
      assert(browser.run("return document.querySelectorAll('.panel canvas').length").asInt
        === panels.size)
      Picture.keep("dashboard.png", browser.screenshot())
    }
  }

  private def read(resource: String): String =
    Using.resource(getClass.getResourceAsStream(s"/browser/$resource"))(in =>
      new String(in.readAllBytes(), UTF_8))

  private def uplot(file: String): Path =
    Using.resource(Files.walk(target.resolve("uplot")))(
      _.iterator.asScala.find(_.getFileName.toString == file).get)
}
