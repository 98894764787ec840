package io.zerohop.spark.versions

import java.nio.file.Files

import io.zerohop.gpu.GpuChecksumApp
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.apache.spark.zerohop.ForgetfulShuffleManager
import org.scalatest.funsuite.AnyFunSuite

/**
 * Spark 4.2 leaves it to the row checksums to notice that a map task that was run again gave other
 * rows than before. A shuffle manager that reports none loses and doubles rows.
 */
@RunBy.Versions
class RowChecksumSuite extends AnyFunSuite with NeedsSparkHome {
  private val home = SparkHomes.of("4.2.0")
  private val rows = "40000"
  private val sum = (0L until 40000L).sum.toString

  for (manager <- Seq(ManagerUnderTest.name, "sort").distinct) {
    test(s"on $home defaults every row of a non-deterministic stage counts once, with $manager") {
      val report = run(manager)
      assert(report - "version" - "struck" === Map(
        "rows" -> rows, "ids" -> rows, "most" -> "1", "sum" -> sum))
    }
  }

  test("a manager that reports no row checksums returns wrong rows for the very same job") {
    assert(run(classOf[ForgetfulShuffleManager].getName)("ids") !== rows)
  }

  for (version <- Seq("4.1.3", "4.2.0")) {
    test(s"on Spark $version consumers run again if the keys say so, and else they do not") {
      val at = SparkHomes.of(version)
      requireHome(at)
      val folder = Files.createTempDirectory("zerohop-checksums")
      val arguments = Seq(folder.toString, folder.resolve("results.json").toString, "rows")
      val ended = SparkSubmitProcess.run(
        at, conf(ManagerUnderTest.name), classOf[GpuChecksumApp].getName, AppJar.path, arguments)
      assert(ended.exit === 0, s"${ended.stdout}; see ${ended.log}")
    }
  }

  private def conf(manager: String) = Map(
    "spark.master" -> "local-cluster[2,1,1024]",
    "spark.executor.memory" -> "512m",
    "spark.shuffle.manager" -> manager,
    "spark.zerohop.pool.size" -> "128m",
    "spark.locality.wait" -> "0",
    "spark.shuffle.io.maxRetries" -> "1",
    "spark.shuffle.io.retryWait" -> "200ms")

  private def run(manager: String): Map[String, String] = {
    requireHome(home)
    val marker = Files.createTempDirectory("zerohop-round-robin").resolve("struck").toString
    val ended = SparkSubmitProcess.run(
      home, conf(manager), classOf[RoundRobinApp].getName, AppJar.path, Seq(marker))
    assert(ended.exit === 0, s"see ${ended.log}")
    val report = AppJar.report(ended.stdout, "round-robin-app:")
    assert(report("version") === home.version)
    assert(report("struck") === "true")
    report
  }
}
