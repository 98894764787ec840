package io.zerohop.spark.browser

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.Locale

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Random, Using}

import com.fasterxml.jackson.databind.ObjectMapper
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Cluster, Local, PathBytes, RunBy}
import io.zerohop.spark.versions.{HistoryServerProcess, SparkHome, SparkHomes}
import org.apache.spark.HashPartitioner
import org.apache.spark.rdd.RDD
import org.scalatest.funsuite.AnyFunSuite

/** The tab GPU Shuffle as a user sees it: the page of a running application, in a real browser. */
@RunBy.Ui
class TabBrowserSuite extends AnyFunSuite {
  private val settings = Seq(
    "spark.shuffle.manager" -> ManagerUnderTest.name,
    "spark.ui.enabled" -> "true",
    "spark.ui.port" -> "0",
    "spark.zerohop.ui.interval" -> "1s",
    "spark.zerohop.pool.size" -> "24m",
    "spark.zerohop.segment.size" -> "8m")

  test("the tab loads, has the metrics' numbers, sorts and filters") {
    assume(ManagerUnderTest.isZerohop, "the tab is Zerohop's")
    Local.require("chromium", "chromedriver")
    Cluster.withCluster(3, settings: _*) { cluster =>
      // Kept, since Spark drops the shuffles of what nobody refers to any more.
      val (kept, bytes) = cluster.counted("shuffles that outgrow the pools")(shuffle(cluster))
      Using.resource(new Browser) { browser =>
        val url = cluster.sc.uiWebUrl.get + "/zerohop/"
        agrees(browser, url, bytes)
        loadsNothingFromElsewhere(browser)
        Picture.keep(
          "host-shuffle.png",
          browser.screenshot(atMost = TabBrowserSuite.PictureHeight))
        sorts(browser)
        filters(browser)
      }
      assert(kept.nonEmpty)
    }
  }

  test("the history server shows what an application on two GPUs reported") {
    assume(ManagerUnderTest.isZerohop, "the tab is Zerohop's")
    Local.require("chromium", "chromedriver")
    val logs = Files.createTempDirectory("zerohop-tab")
    val application = "app-of-two-gpus"
    val log = Using.resource(getClass.getResourceAsStream("/tab/two-gpus.jsonl"))(_.readAllBytes)
    Files.write(logs.resolve(application), log)
    val home = SparkHomes.of(org.apache.spark.SPARK_VERSION)
    Using.resource(new HistoryServerProcess(home, logs, Seq(SparkHomes.zerohopJar))) { server =>
      server.await(application)
      Using.resource(new Browser) { browser =>
        browser.open(server.url(s"/history/$application/zerohop/"))
        assert(byPath(browser) === reportedByPath(new String(log, UTF_8)))
        assert(numbers(browser, "zerohop-pools", 3).forall(_ > 0), "limits of GPU memory")
        Picture.keep(
          "gpu-shuffle.png",
          browser.screenshot(atMost = TabBrowserSuite.PictureHeight))
      }
    }
    Local.delete(logs)
  }

  private val light = SparkHomes.of(org.apache.spark.SPARK_VERSION)
  private val dark = SparkHomes.of("4.2.0")

  test("the page answers first, fits, and can be read, with 2, 40 and 400 executors") {
    assume(ManagerUnderTest.isZerohop, "the tab is Zerohop's")
    Local.require("chromium", "chromedriver")
    val logs = Files.createTempDirectory("zerohop-tab")
    val samples = Seq(
      SampleLog(2, gpu = true),
      SampleLog(40),
      SampleLog(40, fallbacks = true),
      SampleLog(400))
    samples.foreach(_.write(logs))
    for (home <- Seq(light, dark); if home.isThere) {
      Using.resource(new HistoryServerProcess(home, logs, Seq(SparkHomes.zerohopJar))) { server =>
        Using.resource(new Browser) { browser =>
          for (sample <- samples) {
            server.await(sample.application)
            shows(browser, server.url(s"/history/${sample.application}/zerohop/"), sample, home)
          }
        }
      }
    }
    Local.delete(logs)
  }

  private def shows(browser: Browser, url: String, sample: SampleLog, home: SparkHome): Unit = {
    val checks = new TabPageChecks(browser)
    val isDark = home == dark
    browser.resize(1280, 900)
    browser.open(url)
    if (isDark) {
      browser.run("localStorage.setItem('spark-theme', 'dark')")
      browser.open(url)
      assert(browser.run("return document.documentElement.dataset.bsTheme").asText === "dark")
    }
    checks.answersFirst()
    checks.fits()
    val contrast = checks.contrast()
    val bytes = checks.bytes()
    info(f"${sample.application} on $home: $bytes bytes, contrast $contrast%.1f")
    assert(bytes < TabBrowserSuite.MaxBytes)
    if (sample.executors == 400) checks.headsStick()
    checks.addsUp()
    verdict(browser, sample)
    val name = sample.application.replace("app-of", "tab") + (if (isDark) "-dark" else "")
    Picture.keep(s"$name.png", browser.screenshot(1280, TabBrowserSuite.PictureHeight))
    browser.resize(390, 844)
    browser.open(url)
    checks.fits()
    if (sample.fallbacks && !isDark) {
      Picture.keep("tab-narrow.png", browser.screenshot(390, TabBrowserSuite.PictureHeight))
    }
  }

  private def verdict(browser: Browser, sample: SampleLog): Unit = {
    def text(id: String) =
      browser.run(s"const found = document.getElementById('$id');" +
        "return found ? found.innerText : ''").asText
    assert(text("zerohop-verdict").contains(if (sample.fallbacks) "Slow" else "Fast"))
    assert(text("zerohop-reasons").contains("ZH-6033") === sample.fallbacks)
    assert(text("zerohop-pools").contains("GPU memory") === sample.gpu)
    assert(text("zerohop-links").contains("NVLink") === sample.gpu)
    assert(text("zerohop-shuffles").contains("1000") && !text("zerohop-shuffles").contains("1,000"))
    if (sample.fallbacks) {
      val page = browser.run("return document.querySelector('#zerohop-reasons a').href").asText
      val here = browser.run("return location.href").asText
      browser.open(page)
      assert(browser.run("return document.querySelector(location.hash).innerText").asText
          .startsWith(page.split("#").last.toUpperCase(Locale.ROOT)))
      browser.open(here)
    }
  }

  /** What the log's reports come to, read without our classes. */
  private def reportedByPath(log: String): Map[String, Long] = {
    val json = new ObjectMapper
    val flows = log.linesIterator.map(json.readTree).flatMap(_.at("/report/flows").asScala).toSeq
    assert(flows.nonEmpty)
    flows.groupMapReduce(_.get("path").asText)(_.get("bytes").asLong)(_ + _)
  }

  /** Small shuffles, and in the end one of which a part finds no room in memory. */
  private def shuffle(cluster: Cluster): Seq[RDD[_]] =
    for (size <- Seq(100, 400, 900, 3000)) yield {
      val rows = cluster.sc.parallelize(0 until 8, 8).flatMap { map =>
        val random = new Random(map)
        Iterator.tabulate(4000)(row => (row, random.nextBytes(size)))
      }
      val shuffled = rows.partitionBy(new HashPartitioner(8))
      assert(shuffled.count() === 32000)
      shuffled
    }

  /** Reports and metrics come by two ways, so the page is loaded until they agree. */
  private def agrees(browser: Browser, url: String, metrics: PathBytes): Unit = {
    def expected = Seq("local", "peer", "staged").map(path => path -> metrics.bytes(path)).toMap
    assert(expected.values.forall(_ > 0), expected)
    var shown = Map.empty[String, Long]
    Bounded.until(s"the page says $shown, the metrics $expected", 30.seconds) {
      browser.open(url)
      shown = byPath(browser)
      shown == expected
    }
    assert(browser.run("return document.querySelector('li.active').innerText").asText.trim
      === "GPU Shuffle")
    val pairs = numbers(browser, "zerohop-pairs", 5)
    assert(pairs.sum === expected.values.sum)
    val cells = browser.run(
      "return [...document.querySelectorAll('#zerohop-nodes td[data-bytes]')]" +
        ".map(cell => Number(cell.dataset.bytes))")
    assert(cells.elements.asScala.map(_.asLong).sum === expected.values.sum)
    val reasons = browser.run(
      "return document.querySelector('#zerohop-shuffles tbody').innerText").asText
    assert(reasons.contains("the owner does not hold the blocks in memory"))
    assert(numbers(browser, "zerohop-pools", 4).sum > 0, "bytes in files")
    assert(browser.run("return document.getElementById('zerohop-verdict').innerText").asText
        .contains("took the fallback"))
  }

  private def byPath(browser: Browser): Map[String, Long] = {
    val rows = browser.run(
      "return [...document.querySelectorAll('#zerohop-links tbody tr')].map(row => " +
        "[row.cells[2].innerText, row.cells[4].getAttribute('sorttable_customkey')])")
    rows.elements.asScala.toSeq.groupMapReduce(_.get(0).asText)(_.get(1).asText.toLong)(_ + _)
  }

  /** The numbers of a column, from 1, as they are sorted by. */
  private def numbers(browser: Browser, table: String, column: Int): Seq[Long] =
    browser
      .run(
        s"return [...document.querySelectorAll('#$table tbody td:nth-child($column)')]" +
          ".map(cell => Number(cell.getAttribute('sorttable_customkey')))")
      .elements
      .asScala
      .map(_.asLong)
      .toSeq

  private def loadsNothingFromElsewhere(browser: Browser): Unit = {
    val elsewhere = browser.run(
      "return performance.getEntriesByType('resource').map(one => one.name)" +
        ".filter(name => !name.startsWith(location.origin + '/') && !name.startsWith('data:'))")
    assert(elsewhere.size === 0, elsewhere)
  }

  private def sorts(browser: Browser): Unit = {
    def click(column: Int): Unit = {
      browser.run(
        s"document.querySelectorAll('#zerohop-shuffles th a')[${column - 1}].click()")
      Bounded.until("the sorted page", 20.seconds) {
        browser.run(
          "const head = document.querySelector('#zerohop-shuffles th[aria-sort]');" +
            "return document.readyState === 'complete' && head !== null && head.cellIndex")
          .asText === s"${column - 1}"
      }
    }
    val shuffles = numbers(browser, "zerohop-shuffles", 1)
    assert(shuffles.size >= 4 && shuffles === shuffles.sorted)
    click(6)
    val descending = numbers(browser, "zerohop-shuffles", 6)
    assert(descending === descending.sorted.reverse && descending.distinct.size > 1)
    browser.run("document.querySelectorAll('#zerohop-shuffles th a')[5].click()")
    Bounded.until("the page sorted the other way", 20.seconds) {
      numbers(browser, "zerohop-shuffles", 6) == descending.reverse
    }
  }

  private def filters(browser: Browser): Unit = {
    val all = numbers(browser, "zerohop-shuffles", 9)
    val staged = all.count(_ > 0)
    assert(staged > 0 && staged < all.size, all)
    browser.run(
      "const form = document.getElementById('zerohop-filter');" +
        "form.elements['path'].value = 'staged'; form.submit()")
    Bounded.until("the filtered page", 20.seconds) {
      browser.run("return location.search + document.readyState").asText
        .matches("\\?path=staged.*complete")
    }
    assert(byPath(browser).keySet === Set("staged"))
    val left = numbers(browser, "zerohop-shuffles", 9)
    assert(left.size === staged && left.forall(_ > 0))
  }
}

object TabBrowserSuite {

  /** Of a page with 400 executors, Spark's own header with it. */
  val MaxBytes: Int = 400 * 1024

  /** What is below is tables. */
  val PictureHeight = 2100
}
