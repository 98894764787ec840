package io.zerohop.spark.faults

import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Cluster, RunBy}
import org.apache.commons.io.FileUtils
import org.apache.spark.SparkException
import org.apache.spark.zerohop.SparkInternals
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** Local directories that take no file any more, while an application runs. */
@RunBy.Faults
class DiskSuite extends AnyFunSuite with BeforeAndAfterEach {
  private val Nothing = "spark.zerohop.pool.size" -> "1m"
  private var folder: Path = _

  override protected def beforeEach(): Unit = folder = Files.createTempDirectory("zerohop-disks")

  // An executor that still ends deletes its directories at the same time.
  override protected def afterEach(): Unit =
    Bounded.until(s"deletion of $folder", 20.seconds) {
      FileUtils.deleteQuietly(folder.toFile)
      !Files.exists(folder)
    }

  test("one is broken: map outputs go to another") {
    inCluster(Nothing) { cluster =>
      break(cluster, 1)
      val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
      val (answer, seen) = cluster.counted("files")(Workload.answer(shuffled)((_, _) => ()))
      assert(answer === Workload.expected)
      assert(seen.failedTasks === 0)
      assert(seen.bytes("staged") > 0)
      val dirs = cluster.onEach("directories")(() => SparkInternals.localDirs).values
      assert(dirs.forall(all => filesBelow(all(0)) == 0))
      assert(dirs.map(all => filesBelow(all(1))).sum > 0, s"files of $shuffled")
      cluster.assertNothingHeld()
      assert(dirs.map(all => filesBelow(all(1))).sum === 0, "files of shuffles that ended")
    }
  }

  test("all are broken: the task says which") {
    inCluster(Nothing, "spark.task.maxFailures" -> "1") { cluster =>
      break(cluster, 2)
      val failure = intercept[SparkException](cluster.run("no files")(shuffle(cluster)))
      assert(failure.getMessage.contains("any of Spark's local directories (spark.local.dir)"))
      assert(failure.getMessage.contains(folder.toString))
      cluster.assertNothingHeld()
    }
  }

  test("all are broken: what is to make room stays in memory") {
    inCluster("spark.zerohop.spill.start" -> "0", "spark.zerohop.spill.idle" -> "0") { cluster =>
      break(cluster, 2)
      val (answer, seen) = cluster.counted("memory")(shuffle(cluster))
      assert(answer === Workload.expected)
      assert(seen.failedTasks === 0)
      assert(seen.bytes("staged") === 0)
      assert(cluster.gauges("spill.files.outputs").values.sum === 0)
      assert(cluster.gauges("spill.files.failures").values.sum > 0, "nobody tried")
      cluster.assertNothingHeld()
    }
  }

  private def inCluster(settings: (String, String)*)(body: Cluster => Unit): Unit = {
    assume(ManagerUnderTest.isZerohop, "sort shuffle gives up when a directory is broken")
    val disks = Seq("a", "b").map(name => Files.createDirectory(folder.resolve(name)))
    // As on YARN: elsewhere Spark goes on with the directories that this process has used before.
    val directories = Seq(
      "spark.executorEnv.CONTAINER_ID" -> "a test's",
      "spark.executorEnv.LOCAL_DIRS" -> disks.mkString(","))
    Cluster.withCluster(2, settings ++ directories: _*)(body)
  }

  private def shuffle(cluster: Cluster) =
    Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ())

  /**
   * Makes the first directories of every executor refuse files, as a full disk does: their folders
   * become ones in which nothing can be made.
   */
  private def break(cluster: Cluster, count: Int): Unit = {
    cluster.onEach("broken directories") { () =>
      for {
        dir <- SparkInternals.localDirs.take(count)
        name <- (0 until 64).map(i => f"$i%02x")
        folder = Paths.get(dir, name)
        if !Files.isSymbolicLink(folder)
      } {
        if (Files.exists(folder)) Files.move(folder, Paths.get(dir, s"$name-gone"))
        Files.createSymbolicLink(folder, Paths.get("/proc/self/fdinfo"))
      }
    }
    ()
  }

  private def filesBelow(dir: String): Int =
    if (!Files.isDirectory(Paths.get(dir))) 0
    else FileUtils.listFiles(Paths.get(dir).toFile, Array("data", "index"), true).size
}
