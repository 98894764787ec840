package io.zerohop.spark.versions

import java.io.File
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import io.zerohop.spark.support.{Bounded, Http, Local}
import org.apache.spark.launcher.JavaModuleOptions

/**
 * Spark's history server of a laid-out Spark home, in a process of its own.
 *
 * @param home the Spark to run
 * @param logs folder of the event logs
 * @param extra what is on its class path besides
 */
final class HistoryServerProcess(home: SparkHome, logs: Path, extra: Seq[Path])
    extends AutoCloseable {
  private val port = Local.freePort()

  private val folder = Files.createDirectories(
    Paths.get(sys.props("zerohop.test.target"), "history", s"${home.version}_${home.scala}"))

  /** What it says. */
  val log: Path = folder.resolve(if (extra.isEmpty) "without-jar.txt" else "with-jar.txt")

  private val process = {
    val classPath =
      extra.map(_.toString) ++ Seq(home.path.resolve("conf").toString, s"${home.path}/jars/*")
    val command =
      Seq(Paths.get(sys.props("java.home"), "bin", "java").toString, "-Xmx512m") ++
        JavaModuleOptions.defaultModuleOptionArray() ++
        Seq(
          s"-Dspark.history.ui.port=$port",
          s"-Dspark.history.fs.logDirectory=${logs.toUri}",
          "-cp",
          classPath.mkString(File.pathSeparator),
          "org.apache.spark.deploy.history.HistoryServer")
    val builder = new ProcessBuilder(command.asJava)
      .directory(folder.toFile)
      .redirectErrorStream(true)
      .redirectOutput(log.toFile)
    builder.environment.keySet.removeIf(_.startsWith("SPARK_"))
    builder.environment.put("SPARK_HOME", home.path.toString)
    builder.environment.put("SPARK_LOCAL_IP", "127.0.0.1")
    builder.start()
  }

  /** Waits until it knows an application. */
  def await(application: String): Unit =
    Bounded.until(s"$application in the history server, see $log", 60.seconds) {
      process.isAlive && Try(get("/api/v1/applications")).toOption.exists {
        case (status, body) => status == 200 && body.contains(application)
      }
    }

  /** Where a page is. */
  def url(path: String): String = s"http://127.0.0.1:$port$path"

  /** Status and text of a page. */
  def get(path: String): (Int, String) = Http.answer(url(path))

  override def close(): Unit = {
    process.destroy()
    if (!process.waitFor(10, TimeUnit.SECONDS)) process.destroyForcibly()
  }
}
