package io.zerohop.spark.browser

import java.nio.file.Paths

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import io.zerohop.spark.support.{Bounded, Local, RunBy}
import org.scalatest.funsuite.AnyFunSuite

/** The site of the docs as its reader has it, from the disk, in a real browser. */
@RunBy.Ui
class SiteSearchSuite extends AnyFunSuite {
  private val index =
    Paths.get(sys.props("zerohop.test.target"), "site", "docs", "index.html").toUri

  test("the search finds a key, a code and words of a heading, and says if there is nothing") {
    Local.require("chromium", "chromedriver")
    Using.resource(new Browser) { browser =>
      assert(found(browser, "spark.zerohop.pool.size").exists(
          _.contains("docs/configuration.html")))
      assert(found(browser, "zh-1006").exists(_.contains("docs/runbook.html#")))
      // Parts of words, in any order; the page whose title it is comes first.
      assert(found(browser, "star quic").headOption.exists(_.contains("docs/quick-start.html")))
      assert(found(browser, "nosuchword") === Nil)
      assert(shown(browser) === "Nothing was found.")
      assert(found(browser, "<img/src=x>") === Nil)
      assert(found(browser, "") === Nil && shown(browser) === "")
      // Enter leads to the first that was found.
      found(browser, "quick start")
      browser.run("document.querySelector('form').requestSubmit()")
      Bounded.until("the page that was found", 20.seconds) {
        Try(browser.run("return location.pathname").asText)
          .toOption.exists(_.endsWith("/docs/quick-start.html"))
      }
      browser.open(browser.run("return location.href").asText)
      assert(browser.run("return document.querySelector('h1').textContent").asText ===
        "Quick start")
    }
  }

  private def found(browser: Browser, words: String): Seq[String] = {
    val query = java.net.URLEncoder.encode(words, "UTF-8")
    browser.open(s"$index?q=$query")
    browser.run("return [...document.querySelectorAll('#siteResults a')].map(a => a.href)")
      .elements.asScala.map(_.asText).toSeq
  }

  private def shown(browser: Browser): String =
    browser.run("return document.getElementById('siteResults').textContent").asText
}
