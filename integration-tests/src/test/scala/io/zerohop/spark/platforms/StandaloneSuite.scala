package io.zerohop.spark.platforms

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Local, RunBy}
import io.zerohop.spark.versions.{AppJar, ShuffleApp, SparkHomes}
import org.scalatest.funsuite.AnyFunSuite

/** The two command files of docs/platforms/standalone.md, as they are. */
@RunBy.Platforms
class StandaloneSuite extends AnyFunSuite {
  private val LimitSeconds = 150L
  private val examples = Distribution.repository.resolve("examples/standalone")

  test("a cluster is started, and an application's executors read each other's memory") {
    assume(ManagerUnderTest.isZerohop, "the page is about Zerohop")
    val target = Paths.get(sys.props("zerohop.test.target")).toAbsolutePath
    val folder =
      Files.createTempDirectory(Files.createDirectories(target.resolve("platforms")), "sa-")
    val home = Distribution.of(SparkHomes.of("4.1.3"), folder.resolve("spark"))
    val port = Local.freePort()
    val environment = Map("SPARK_HOME" -> home.toString, "SPARK_SCALA_VERSION" -> "2.13")
    val cluster = Distribution.process(
      Seq(examples.resolve("start.sh").toString),
      folder, "start", environment + ("MASTER_PORT" -> port.toString)).start()
    try {
      // submit.sh waits for the master.
      val said = submit(folder,
        environment ++ Map(
          "ZEROHOP_JAR" -> SparkHomes.zerohopJar.toString,
          "SPARK_LOCAL_IP" -> "127.0.0.1",
          "MASTER" -> s"spark://127.0.0.1:$port"))
      val report = AppJar.report(said, "shuffle-app:")
      assert(report("groups") === "1000")
      assert(report("sum") === "4999950000")
      assert(report.getOrElse("zerohop.peer.bytes", "0").toLong > 0, report)
      assert(report.getOrElse("zerohop.staged.bytes", "0") === "0", report)
    } finally Distribution.end(cluster)
    Local.delete(folder)
  }

  /** Waits for both executors, so that each has something to read of the other. */
  private def submit(folder: Path, environment: Map[String, String]): String = {
    val command = Seq(examples.resolve("submit.sh").toString) ++
      Seq("spark.cores.max=2", "spark.scheduler.minRegisteredResourcesRatio=1.0",
        "spark.executor.memory=512m", "spark.ui.enabled=false").flatMap(Seq("--conf", _)) ++
      Seq("--driver-memory", "512m", "--class", classOf[ShuffleApp].getName, AppJar.path.toString)
    val process = Distribution.process(command, folder, "submit", environment).start()
    try {
      assert(process.waitFor(LimitSeconds, TimeUnit.SECONDS), s"no end in $LimitSeconds s: $folder")
      assert(process.exitValue === 0, s"see $folder/submit.err")
      Files.readString(folder.resolve("submit.out"))
    } finally Distribution.end(process)
  }
}
