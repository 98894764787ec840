package io.zerohop.spark.versions

import java.io.File
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import io.zerohop.spark.support.Watchdog
import org.apache.spark.launcher.JavaModuleOptions

/** How a spark-submit process ended and what it said. */
final case class Submitted(exit: Int, stdout: String, log: Path)

/** spark-submit of a laid-out Spark home in a process of its own, as its script would run it. */
object SparkSubmitProcess {
  private val LimitSeconds = 180L

  /**
   * Runs an application to its end.
   *
   * @param home the Spark to run
   * @param conf Spark's configuration, the master included
   * @param mainClass the application
   * @param jar holds the application
   * @param arguments of the application
   */
  def run(
      home: SparkHome,
      conf: Map[String, String],
      mainClass: String,
      jar: Path,
      arguments: Seq[String] = Nil): Submitted = {
    val folder = Files.createDirectories(
      Paths.get(sys.props("zerohop.test.target"), "versions", s"${home.version}_${home.scala}"))
    val out = folder.resolve("stdout.txt")
    val log = folder.resolve("stderr.txt")
    val zerohop = s"${SparkHomes.zerohopJar}${File.pathSeparator}$jar"
    val settings = conf ++ Map(
      "spark.driver.extraClassPath" -> zerohop,
      "spark.executor.extraClassPath" -> zerohop,
      "spark.ui.enabled" -> "false")
    val classPath = Seq(zerohop, home.path.resolve("conf").toString, s"${home.path}/jars/*")
    val command =
      Seq(Paths.get(sys.props("java.home"), "bin", "java").toString, "-Xmx768m") ++
        JavaModuleOptions.defaultModuleOptionArray() ++
        Seq("-cp", classPath.mkString(File.pathSeparator), "org.apache.spark.deploy.SparkSubmit") ++
        settings.toSeq.sorted.flatMap { case (key, value) => Seq("--conf", s"$key=$value") } ++
        Seq("--class", mainClass, jar.toString) ++ arguments
    val builder = new ProcessBuilder(command.asJava)
      .directory(folder.toFile)
      .redirectOutput(out.toFile)
      .redirectError(log.toFile)
    val environment = builder.environment
    environment.keySet.removeIf(_.startsWith("SPARK_"))
    environment.put("SPARK_HOME", home.path.toString)
    environment.put("SPARK_SCALA_VERSION", home.scala)
    environment.put("SPARK_LOCAL_IP", "127.0.0.1")
    val process = builder.start()
    try {
      val ended = process.waitFor(LimitSeconds, TimeUnit.SECONDS)
      if (!ended) {
        val dump = Watchdog.dumpStacks(s"spark-submit-${home.version}_${home.scala}")
        throw new AssertionError(s"$home did not end in $LimitSeconds s; stacks in $dump, log $log")
      }
      Submitted(process.exitValue, Files.readString(out), log)
    } finally {
      process.descendants.forEach(child => { child.destroyForcibly(); () })
      process.destroyForcibly()
    }
  }
}
