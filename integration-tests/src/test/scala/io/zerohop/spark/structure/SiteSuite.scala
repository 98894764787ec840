package io.zerohop.spark.structure

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit
import javax.tools.ToolProvider

import scala.util.Using

import io.zerohop.spark.support.RunBy
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** The generator of the site on small trees: what it refuses, and what it makes of the rest. */
@RunBy.Verify
class SiteSuite extends AnyFunSuite with BeforeAndAfterAll {
  private val repository = Paths.get(sys.props("zerohop.test.repository")).toAbsolutePath.normalize
  private val target = Paths.get(sys.props("zerohop.test.target"))
  private val source = repository.resolve("release/src/site")

  private lazy val classPath = {
    val libraries = Using.resource(Files.list(target.resolve("commonmark")))(_.toArray.toSeq)
    (libraries :+ target.resolve("site-generator")).mkString(java.io.File.pathSeparator)
  }

  /** A tree in which everything is in order. */
  private val whole = Map(
    "README.md" -> "# Top\n\n[Docs](docs) and ![a picture](docs/a.png), [build](pom.xml).\n\n<img src=\"docs/b.png\" width=\"9\">",
    "docs/README.md" -> "# All\n\n**Start**: [go](a.md) · [top](../README.md)\n\n## Depths\n\n- [b](in/b.md)",
    "docs/a.md" -> "# A & <a id=\"old\"></a>b\n\nSee [twice](#twice-1), [b](in/b.md#c-d_e).\n\n## Twice\n\nx\n\n## Twice\n\n`spark.key` \"quoted\" \\\\ |",
    "docs/in/b.md" -> "# B\n\n## C: `d_e`\n\n[old](../a.md#old) [away](https://example.org/#x)\n\n| a | b |\n| --- | --- |\n| 1 | [src](../../src/X.java) |"
  )

  override def beforeAll(): Unit = {
    val classes = Files.createDirectories(target.resolve("site-generator"))
    val libraries = Using.resource(Files.list(target.resolve("commonmark")))(_.toArray.toSeq)
    val status = ToolProvider.getSystemJavaCompiler.run(
      null,
      null,
      null,
      "-d",
      classes.toString,
      "-cp",
      libraries.mkString(java.io.File.pathSeparator),
      source.resolve("Site.java").toString)
    assert(status === 0)
  }

  private lazy val wholeSite = built(whole)

  test("pages keep their places, and links between them lead to pages and headings") {
    val site = wholeSite
    val a = read(site, "docs/a.html")
    assert(a.contains("href=\"#twice-1\"") && a.contains("<h2 id=\"twice-1\">"))
    assert(a.contains("href=\"in/b.html#c-d_e\"") && a.contains("<title>A &amp; b – Zerohop 1.2.3"))
    val b = read(site, "docs/in/b.html")
    assert(b.contains("<h2 id=\"c-d_e\">") && b.contains("href=\"../a.html#old\""))
    assert(b.contains("href=\"https://example.org/#x\"") && b.contains("<table>"))
    assert(b.contains("href=\"https://home/blob/v1.2.3/src/X.java\""))
    assert(b.contains("src=\"../../search.js\""))
    val top = read(site, "index.html")
    assert(top.contains("href=\"docs/index.html\"") && top.contains("src=\"docs/a.png\""))
    assert(top.contains("<img src=\"docs/b.png\" width=\"9\">"))
    assert(Files.exists(site.resolve("docs/b.png")))
    assert(Files.exists(site.resolve("docs/a.png")) && !Files.exists(site.resolve("src")))
  }

  test("the menu is the index's") {
    val b = read(wholeSite, "docs/in/b.html")
    val menu = b.substring(b.indexOf("<nav>"), b.indexOf("</nav>"))
    assert("<h2>([^<]*)</h2>".r.findAllMatchIn(menu).map(_.group(1)).toSeq === Seq("Start",
      "Depths"))
    assert("<a href=\"([^\"]*)\"".r.findAllMatchIn(menu).map(_.group(1)).toSeq === Seq("../a.html",
      "../../index.html", "b.html"))
    assert(menu.contains("<a href=\"b.html\" aria-current=\"page\">b</a>"))
  }

  test("the search knows each heading and the text below it") {
    val index = read(wholeSite, "search-index.js")
    assert(
      index.contains("""["docs/a.html#twice-1", "A & b", "Twice", "spark.key \"quoted\" \\ |"]"""))
    assert(index.contains("""["docs/in/b.html#c-d_e", "B", "C: d_e", "old away a b 1 src"]"""))
  }

  test("what is wrong with a page is said") {
    val wrong = Seq(
      "[x](none.md)" -> "docs/a.md links to none.md, which is not there",
      "[x](../../else.md)" -> "docs/a.md links to ../../else.md, which is not there",
      "![x](c.png)" -> "docs/a.md links to c.png, which is not there",
      "[x](in/b.md#none)" -> "docs/a.md links to in/b.md#none, which has no such anchor",
      "[x](#none)" -> "docs/a.md links to #none, which has no such anchor",
      "<img src=\"x.png\" width=\"9\">" -> "docs/a.md links to x.png, which is not there",
      "<img onload=\"x\">" -> "docs/a.md: this HTML is not checked")
    val page = whole("docs/a.md") + wrong.map(_._1).mkString("\n\n", "\n\n", "")
    val (status, said) = run(tree(whole.updated("docs/a.md", page)))
    assert(status === 1, said)
    for ((_, why) <- wrong) assert(said.contains(why))
  }

  test("a page to which no way leads from the index is said, and an index that is missing") {
    val (status, said) = run(tree(whole.updated("docs/c.md", "# C\n\n[a](a.md)")))
    assert(status === 1 && said.contains("no way by links leads from docs/README.md to docs/c.md"))
    assert(run(tree(whole - "docs/README.md"))._2.contains("docs/README.md is missing"))
  }

  test("a folder that is no site is left alone") {
    val root = tree(whole)
    Files.writeString(Files.createDirectories(root.resolve("out")).resolve("x"), "x")
    val (status, said) = run(root)
    assert(status === 1 && said.contains("exists and is no site"))
    assert(Files.exists(root.resolve("out/x")))
  }

  private def built(pages: Map[String, String]): Path = {
    val root = tree(pages)
    // The second time over the first.
    for (_ <- 1 to 2) {
      val (status, said) = run(root)
      assert(status === 0, said)
    }
    root.resolve("out")
  }

  private def tree(pages: Map[String, String]): Path = {
    val root = Files.createTempDirectory("zerohop-site")
    val assets = Seq("page.html", "search.js", "style.css").map { name =>
      s"release/src/site/$name" -> Files.readString(source.resolve(name))
    }
    val others = Seq("docs/a.png" -> "", "docs/b.png" -> "", "pom.xml" -> "", "src/X.java" -> "")
    for ((name, text) <- pages ++ assets ++ others) {
      Files.createDirectories(root.resolve(name).getParent)
      Files.writeString(root.resolve(name), text)
    }
    root
  }

  private def run(root: Path): (Int, String) = {
    val java = Paths.get(sys.props("java.home"), "bin", "java").toString
    val log = root.resolve("log.txt").toFile
    val process = new ProcessBuilder(java, "-cp", classPath, "Site", root.toString,
      root.resolve("out").toString, "1.2.3", "https://home")
      .redirectErrorStream(true)
      .redirectOutput(log)
      .start()
    assert(process.waitFor(60, TimeUnit.SECONDS))
    (process.exitValue, Files.readString(log.toPath, UTF_8))
  }

  private def read(site: Path, name: String): String = Files.readString(site.resolve(name))
}
