package io.zerohop.spark.demo

import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import io.zerohop.cluster.Installation
import io.zerohop.spark.support.{RunBy, Watchdog}
import io.zerohop.spark.suites.ManagerUnderTest
import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

/** The demo with settings that it does not have by itself: every row is sort shuffle's even so. */
@RunBy.Faults
class DemoSuite extends AnyFunSuite {
  private val LimitSeconds = 300L
  private val Queries = "q5,q9,repartition"

  test("pools of 5 % of what is shuffled") {
    assume(ManagerUnderTest.isZerohop, "the demo compares both")
    val said = demo("--scale", "0.03", "--queries", Queries, "--conf", "spark.zerohop.pool.size=2m",
      "--conf", "spark.zerohop.segment.size=1m", "--conf", "spark.zerohop.spill.idle=500ms")
    val result = said.linesIterator.find(_.startsWith("demo: ok")).getOrElse(fail(said))
    assert(result.contains(s"queries=${Queries.split(',').length} mismatches=0"))
    val staged = "staged_bytes=(\\d+)".r.findFirstMatchIn(result).map(_.group(1).toLong)
    assert(staged.exists(_ > 0), "everything found room")
  }

  /** Runs it to its end and returns what it has printed. */
  private def demo(options: String*): String = {
    val repository = Paths.get(sys.props("zerohop.test.repository")).toAbsolutePath.normalize
    val installation = Installation.in(repository)
    val home = installation.sparkHome
    val run = Files.createTempDirectory("zerohop-demo")
    val out = run.resolve("out.txt")
    val classPath = Seq(installation.applicationJar) ++ installation.applicationJars.asScala ++
      Seq(home.root.resolve("conf"), home.jars.resolve("*"))
    val command = Seq(Paths.get(sys.props("java.home"), "bin", "java").toString, "-Xmx256m", "-cp",
      classPath.mkString(":"), "io.zerohop.demo.Demo", "--project", repository.toString,
      "--run-dir", run.toString) ++ options
    val builder = new ProcessBuilder(command.asJava)
      .directory(run.toFile)
      .redirectErrorStream(true)
      .redirectOutput(out.toFile)
    builder.environment.keySet.removeIf(_.startsWith("SPARK_"))
    val process = builder.start()
    try {
      if (!process.waitFor(LimitSeconds, TimeUnit.SECONDS)) {
        fail(s"the demo did not end in $LimitSeconds s; stacks in ${Watchdog.dumpStacks("demo")}")
      }
      Files.readString(out)
    } finally {
      process.descendants.forEach(child => { child.destroyForcibly(); () })
      process.destroyForcibly()
      FileUtils.deleteDirectory(run.toFile)
    }
  }
}
