package io.zerohop.spark.demo

import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import io.zerohop.cluster.Installation
import io.zerohop.spark.support.{Bounded, Http, RunBy, Watchdog}
import io.zerohop.spark.suites.ManagerUnderTest
import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

/** The demo with settings that it does not have by itself: every row is sort shuffle's even so. */
@RunBy.Faults
class DemoSuite extends AnyFunSuite {
  private val LimitSeconds = 300L
  private val Legend = "ratio: time of zerohop divided by time of sort; below 1 zerohop is faster"

  test("--quick with pools of 5 % of what is shuffled, its tab kept until Enter") {
    assume(ManagerUnderTest.isZerohop, "the demo compares both")
    val said = demo(
      Seq("--quick", "--queries", "q3,repartition", "--keep", "--conf",
        "spark.zerohop.pool.size=2m", "--conf",
        "spark.zerohop.segment.size=1m", "--conf", "spark.zerohop.spill.idle=500ms"),
      (process, text) => {
        val Held = "the applications stay for 1800 s: (\\S+)".r.unanchored
        Bounded.until("the demo holds its applications", LimitSeconds.seconds) {
          Held.findFirstIn(text()).isDefined || !process.isAlive
        }
        text() match {
          case Held(tab) => assert(Http.get(tab).contains("peer"), tab)
          case other => fail(other)
        }
        process.getOutputStream.write('\n')
        process.getOutputStream.flush()
      })
    assert(said.contains(Legend))
    assert("the tab, while this runs: http://\\S+:\\d+/zerohop/".r.findFirstIn(said).isDefined,
      said)
    val result = said.linesIterator.find(_.startsWith("demo: ok")).getOrElse(fail(said))
    assert(result.contains("queries=2 mismatches=0"))
    val staged = "staged_bytes=(\\d+)".r.findFirstMatchIn(result).map(_.group(1).toLong)
    assert(staged.exists(_ > 0), "everything found room")
  }

  /**
   * Runs it to its end and returns what it has printed.
   *
   * @param meanwhile is given the process, and what it has printed so far
   */
  private def demo(options: Seq[String], meanwhile: (Process, () => String) => Unit): String = {
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
      meanwhile(process, () => Files.readString(out))
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
