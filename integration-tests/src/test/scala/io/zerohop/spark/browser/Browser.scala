package io.zerohop.spark.browser

import java.net.{InetAddress, ServerSocket, URI}
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.file.{Files, Path, Paths}
import java.time.Duration
import java.util.Base64
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.zerohop.spark.support.{Bounded, Local}

/** Chromium without a window, driven over WebDriver. Owns both processes and a profile of its own. */
final class Browser extends AutoCloseable {
  private val json = new ObjectMapper
  private val client = HttpClient.newHttpClient()

  private val port = Local.freePort()

  private val folder = Files.createDirectories(
    Paths.get(sys.props("zerohop.test.target"), "browser"))

  private val profile = Files.createTempDirectory("zerohop-chromium")

  private val driver = new ProcessBuilder("chromedriver", s"--port=$port")
    .redirectErrorStream(true)
    .redirectOutput(folder.resolve("chromedriver.txt").toFile)
    .start()

  private val session: String =
    try {
      Bounded.until("chromedriver", 30.seconds) {
        Try(ask("GET", "/status", "").get("ready").asBoolean).getOrElse(false)
      }
      begin()
    } catch {
      case e: Throwable =>
        stop()
        throw e
    }

  private def begin(): String = {
    val arguments = Seq(
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-dev-shm-usage",
      "--force-device-scale-factor=1",
      s"--window-size=${Browser.Width},900",
      s"--user-data-dir=$profile")
    val options = Map("args" -> arguments.asJava).asJava
    val wanted = Map("alwaysMatch" -> Map("goog:chromeOptions" -> options).asJava).asJava
    val body = json.writeValueAsString(Map("capabilities" -> wanted).asJava)
    ask("POST", "/session", body).get("sessionId").asText
  }

  /** Loads a page, and waits for its scripts, also for those that jQuery runs after the loading. */
  def open(url: String): Unit = {
    command("/url", Map("url" -> url))
    val script = "const done = arguments[0]; window.jQuery ? jQuery(() => done()) : done()"
    command("/execute/async", Map("script" -> script, "args" -> Seq.empty[String].asJava))
    ()
  }

  /** What a script of JavaScript returns. */
  def run(script: String): JsonNode =
    command("/execute/sync", Map("script" -> script, "args" -> Seq.empty[String].asJava))

  /** Lays pages out for a window of this size. */
  def resize(width: Int, height: Int): Unit = {
    val size = Map(
      "width" -> Int.box(width),
      "height" -> Int.box(height),
      "deviceScaleFactor" -> Int.box(1),
      "mobile" -> Boolean.box(false)).asJava
    command("/goog/cdp/execute",
      Map("cmd" -> "Emulation.setDeviceMetricsOverride", "params" -> size))
    ()
  }

  /** The page as PNG, from its top to its end or to a height. */
  def screenshot(width: Int = Browser.Width, atMost: Int = Int.MaxValue): Array[Byte] = {
    resize(width, 900)
    val height = run("return document.documentElement.scrollHeight").asInt
    resize(width, math.min(height, atMost))
    run("window.scrollTo(0, 0)")
    Base64.getDecoder.decode(ask("GET", s"/session/$session/screenshot", "").asText)
  }

  private def command(path: String, parameters: Map[String, AnyRef]): JsonNode =
    ask("POST", s"/session/$session$path", json.writeValueAsString(parameters.asJava))

  private def ask(method: String, path: String, body: String): JsonNode = {
    val request = HttpRequest
      .newBuilder(URI.create(s"http://127.0.0.1:$port$path"))
      .timeout(Duration.ofSeconds(60))
      .method(method, HttpRequest.BodyPublishers.ofString(body))
      .build()
    val response = client.send(request, HttpResponse.BodyHandlers.ofString())
    if (response.statusCode != 200) {
      throw new AssertionError(s"$method $path: ${response.body}; see $folder")
    }
    json.readTree(response.body).get("value")
  }

  override def close(): Unit =
    try {
      ask("DELETE", s"/session/$session", "")
      ()
    } finally stop()

  private def stop(): Unit = {
    val children = driver.descendants.iterator.asScala.toList
    driver.destroy()
    if (!driver.waitFor(10, TimeUnit.SECONDS)) driver.destroyForcibly()
    children.foreach(_.destroyForcibly())
    Try(Local.delete(profile))
    ()
  }
}

object Browser {
  val Width = 1040
}
