package io.zerohop.spark.faults

import java.io.RandomAccessFile
import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.spark.zerohop.SparkInternals

/**
 * Everything that was published moves to files at once. Files are not compressed, since a codec
 * might notice damage that nothing else does.
 */
@RunBy.Faults
class SpillSuite extends ClusterSuite {
  override protected def settings: Map[String, String] = Map(
    "spark.zerohop.spill.start" -> "0",
    "spark.zerohop.spill.idle" -> "0",
    "spark.shuffle.compress" -> "false")

  test("what moved to files is read from there") {
    val (shuffled, _) = spilled()
    val (answer, seen) = cluster.counted("read")(Workload.answer(shuffled)((_, _) => ()))
    assert(answer === Workload.expected)
    assert(seen.failedTasks === 0)
    assert(seen.bytes("staged") > 0)
    assert(seen.bytes("local") + seen.bytes("peer") === 0)
    assert(cluster.gauges("spill.files.bytes").values.sum > 0)
    cluster.assertNothingHeld()
    assert(dataFiles.isEmpty, "files of shuffles that ended")
  }

  test("bytes of files flip") {
    Soak.repeat("spilled file flipped") { run =>
      val (shuffled, id) = spilled()
      val damaged = dataFiles.filter(_.getFileName.toString.startsWith(s"shuffle_${id}_")).sorted
      val file = damaged(run % damaged.size)
      flip(file, run)
      val (answer, seen) = cluster.counted("read")(Workload.answer(shuffled)((_, _) => ()))
      assert(answer === Workload.expected)
      assert(seen.finishedMapTasks > 0, "no map task ran again")
      val output = file.getFileName.toString.stripSuffix("0.data")
      assert(seen.fetchFailures.nonEmpty)
      assert(
        seen.fetchFailures.forall(it => it.contains("damaged in its file") && it.contains(output)),
        seen.fetchFailures)
      cluster.assertNothingHeld()
      seen.failedTasks
    }
  }

  test("readers die while what they read moves") {
    Soak.repeat("reader killed during spill") { run =>
      cluster.awaitExecutors()
      val fault = Fault.in(folder)
      val (answer, seen) = cluster.counted("killed") {
        Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ())) { (partition, record) =>
          if (partition == run % Workload.Reducers && record == 300 * run) fault.killSelf()
        }
      }
      assert(answer === Workload.expected)
      assert(fault.happened)
      cluster.awaitExecutors()
      cluster.assertNothingHeld()
      seen.failedTasks
    }
  }

  /** A shuffle all of whose map outputs are in files, and its id. */
  private def spilled() = {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has files and nothing else")
    cluster.awaitExecutors()
    val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
    val before = outputs
    val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
    var moved = 0L
    Bounded.until(s"map outputs in files, now $moved", 60.seconds) {
      moved = outputs - before
      moved == Workload.Maps
    }
    (shuffled, id)
  }

  private def outputs: Long = cluster.gauges("spill.files.outputs").values.sum

  /** Data files of map outputs, of all executors. */
  private def dataFiles: Seq[Path] =
    cluster.onEach("local directories")(() => SparkInternals.localDirs).values.flatten.toSeq
      .distinct
      .flatMap { dir =>
        Using.resource(Files.walk(Paths.get(dir))) {
          _.iterator.asScala.filter(_.getFileName.toString.endsWith(".data")).toList
        }
      }

  private def flip(file: Path, seed: Int): Unit =
    Using.resource(new RandomAccessFile(file.toFile, "rw")) { opened =>
      val at = opened.length * (seed % 7 + 1) / 8
      opened.seek(at)
      val before = opened.read()
      opened.seek(at)
      opened.write(before ^ 16)
    }
}
