package io.zerohop.spark.support

import java.lang.ProcessBuilder.Redirect
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._

/** What is left of a wait that did not end: the stacks of this JVM and of all that it started. */
object Watchdog {
  private val LimitSeconds = 20L

  /** Of a file's name, which has 255 bytes at most. */
  private val NameLimit = 160

  /** Writes one file per JVM and returns their folder. */
  def dumpStacks(reason: String): Path = {
    val folder = Files.createDirectories(
      Paths.get(
        sys.props("zerohop.test.target"),
        "stacks",
        s"${reason.take(NameLimit).replaceAll("[^A-Za-z0-9._-]", "-")}-${System.currentTimeMillis}"))
    val self = ProcessHandle.current
    val jvms = self +: self.descendants.iterator.asScala.filter(isJvm).toSeq
    jvms.foreach(jvm => jstack(jvm.pid, folder.resolve(s"${jvm.pid}.txt")))
    folder
  }

  private def isJvm(process: ProcessHandle): Boolean =
    process.info.command.toScala.exists(_.endsWith("java"))

  private def jstack(pid: Long, to: Path): Unit = {
    val tool = Paths.get(sys.props("java.home"), "bin", "jstack")
    // A run time has no jstack; the JVM writes its stacks to its own output then.
    val command = if (Files.isExecutable(tool)) Seq(tool.toString, "-l") else Seq("kill", "-QUIT")
    val process = new ProcessBuilder((command :+ pid.toString).asJava)
      .redirectErrorStream(true)
      .redirectOutput(Redirect.to(to.toFile))
      .start()
    if (!process.waitFor(LimitSeconds, TimeUnit.SECONDS)) process.destroyForcibly()
  }
}
