package io.zerohop.spark.operation

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.zerohop.spark.support.{Bounded, Http, Local}
import org.apache.spark.SparkContext

/** A Prometheus of its own, as a child process; it ends with `close`. */
final class Prometheus(config: String) extends AutoCloseable {
  private val folder = Files.createTempDirectory("prometheus")
  private val log = folder.resolve("log")
  private val port = Local.freePort()
  private val process = start()

  try Bounded.until(s"Prometheus, see $log", 30.seconds) {
      assert(process.isAlive, s"Prometheus has ended: ${Files.readString(log)}")
      Try(Http.get(s"http://127.0.0.1:$port/-/ready")).isSuccess
    }
  catch {
    case e: Throwable =>
      close()
      throw e
  }

  private def start(): Process = {
    val file = Files.writeString(folder.resolve("prometheus.yml"), config)
    new ProcessBuilder(
      "prometheus",
      s"--config.file=$file",
      s"--storage.tsdb.path=${folder.resolve("data")}",
      s"--web.listen-address=127.0.0.1:$port"
    ).redirectErrorStream(true).redirectOutput(log.toFile).start()
  }

  /** What an expression gives now; none if Prometheus refuses it. */
  def query(expression: String): Option[Seq[JsonNode]] = ask("query?", expression)

  private def ask(question: String, expression: String): Option[Seq[JsonNode]] = {
    val answer = new ObjectMapper().readTree(
      Http.get(
        s"http://127.0.0.1:$port/api/v1/${question}query=" + URLEncoder.encode(expression, UTF_8)))
    Option.when(answer.get("status").asText == "success")(
      answer.at("/data/result").elements.asScala.toSeq)
  }

  /** What an expression gave in each of the last seconds; none if Prometheus refuses it. */
  def lately(expression: String, seconds: Int): Option[Seq[JsonNode]] = {
    val now = System.currentTimeMillis / 1000
    ask(s"query_range?start=${now - seconds}&end=$now&step=1&", expression)
  }

  override def close(): Unit = {
    process.destroy()
    if (!process.waitFor(20, TimeUnit.SECONDS)) process.destroyForcibly().waitFor()
    Local.delete(folder)
  }
}

object Prometheus {

  /** One that asks a driver every second, by the file that docs/metrics.md names. */
  def of(sc: SparkContext): Prometheus =
    new Prometheus(
      Files.readString(Observed.files.resolve("prometheus.yml"))
        .replace("localhost:4040", sc.uiWebUrl.get.replaceFirst("https?://", ""))
        .replace("scrape_interval: 10s", "scrape_interval: 1s"))
}
