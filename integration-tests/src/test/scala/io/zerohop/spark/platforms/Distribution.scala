package io.zerohop.spark.platforms

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import io.zerohop.spark.versions.SparkHome
import org.apache.spark.launcher.JavaModuleOptions

/**
 * A Spark home with what command files of users call: `bin/spark-class` and `bin/spark-submit`. Maven
 * has Spark's jars but not its scripts; these ask Spark's launcher for the command, as those do.
 */
object Distribution {
  private val SparkClass =
    """words=()
      |while IFS= read -r -d '' word; do
      |  words+=("${word#$'\n'}")
      |done < <("$JAVA_HOME/bin/java" -Xmx64m -cp "$SPARK_HOME/jars/*" org.apache.spark.launcher.Main "$@")
      |exec "${words[@]:1}"
      |""".stripMargin

  private val SparkSubmit =
    """exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.SparkSubmit "$@"
      |""".stripMargin

  /** Lays one out in a folder that must not exist. */
  def of(home: SparkHome, folder: Path): Path = {
    Files.createDirectories(folder.resolve("bin"))
    for (shared <- Seq("jars", "conf", "RELEASE")) {
      Files.createSymbolicLink(folder.resolve(shared), home.path.resolve(shared).toRealPath())
    }
    script(folder, "spark-class", SparkClass)
    script(folder, "spark-submit", SparkSubmit)
    folder
  }

  /** Adds a command to a distribution's `bin`: lines of bash. */
  def script(distribution: Path, name: String, lines: String): Unit = {
    val file = distribution.resolve("bin").resolve(name)
    Files.writeString(file, s"#!/usr/bin/env bash\nset -euo pipefail\n$lines")
    assert(file.toFile.setExecutable(true))
  }

  /** A process in a folder with a log there; its environment is this one without Spark's. */
  def process(
      command: Seq[String],
      folder: Path,
      name: String,
      environment: Map[String, String]): ProcessBuilder = {
    val builder = new ProcessBuilder(command.asJava)
      .directory(folder.toFile)
      .redirectError(folder.resolve(s"$name.err").toFile)
      .redirectOutput(folder.resolve(s"$name.out").toFile)
    builder.environment.keySet.removeIf(_.startsWith("SPARK_"))
    builder.environment.put("JAVA_HOME", sys.props("java.home"))
    builder.environment.putAll(environment.asJava)
    builder
  }

  /** What Spark's launcher would add by itself: its jars, and what they need of Java. */
  def java(home: String, mainClass: String, arguments: Seq[String]): Seq[String] =
    Seq(Paths.get(sys.props("java.home"), "bin", "java").toString, "-Xmx768m") ++
      JavaModuleOptions.defaultModuleOptionArray() ++
      Seq("-cp", s"$home/conf:$home/jars/*", mainClass) ++ arguments

  /** Ends a process and what it has started. */
  def end(process: Process): Unit = {
    val all = process.descendants.iterator.asScala.toSeq :+ process.toHandle
    process.destroy()
    if (!process.waitFor(10, TimeUnit.SECONDS)) process.destroyForcibly()
    all.foreach { child => child.destroyForcibly(); () }
  }

  /** The project's own folder. */
  def repository: Path =
    Paths.get(sys.props("zerohop.test.repository")).toAbsolutePath.normalize
}
