package io.zerohop.spark.faults

import java.nio.file.{Files, Path}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import io.zerohop.spark.support.{Bounded, Cluster, Http, Leftover, RunBy}
import org.apache.spark.zerohop.SparkInternals

/** A keeper on the node: what an executor has published outlives it. */
@RunBy.Verify
class KeeperSuite extends KeeperClusterSuite {
  override protected def settings: Map[String, String] =
    super.settings ++ Map("spark.ui.enabled" -> "true", "spark.ui.port" -> "0")

  test("no output of an executor that is killed between stages is computed again") {
    val shuffled = keptShuffle()
    killAndNotice(youngest)
    assertReadAsItIs(shuffled)
    // Executors ask the keeper every five seconds, and report as often.
    Bounded.until("the tab shows the keeper", 30.seconds) {
      val row = keepersInTab
      row("Keeper").startsWith("connected") && row("Adopted").toLong > 0 &&
      row("Outputs").toLong > 0 && row("To this node").endsWith("iB") && row("Restarts") == "0"
    }
  }

  test("nor of two, one after the other, which leaves none of the first executors") {
    val shuffled = keptShuffle()
    for (_ <- 1 to 2) {
      cluster.kill(cluster.pids.keys.minBy(_.toInt))
      cluster.awaitExecutors()
    }
    assertReadAsItIs(shuffled)
  }

  test("an executor that is killed in a map stage loses only what it had not published") {
    keptShuffle()
    val fault = Fault.in(folder)
    val (answer, _) = cluster.counted("killed while it writes") {
      Workload.answer(Workload.shuffled(cluster.sc) { (map, record) =>
        if (map == 6 && record == 100) fault.killSelf()
      })((_, _) => ())
    }
    assert(fault.happened)
    assert(answer === Workload.expected)
    cluster.awaitExecutors()
  }

  test("without its keeper an output is computed again, and the next keeper holds the new one") {
    val shuffled = keptShuffle()
    cluster.kill(youngest)
    cluster.awaitExecutors()
    killKeepers()
    val (answer, read) = cluster.counted("read without the keeper") {
      Workload.answer(shuffled)((_, _) => ())
    }
    assert(answer === Workload.expected)
    assert(read.finishedMapTasks > 0)
    assertReadAsItIs(keptShuffle())
  }

  /** The row of the only node in the tab, by the heads of its columns. */
  private def keepersInTab: Map[String, String] = {
    val page = Http.get(cluster.sc.uiWebUrl.get + "/zerohop/")
    def cells(tag: String, text: String) =
      s"(?s)<$tag[^>]*>(.*?)</$tag>".r.findAllMatchIn(text)
        .map(_.group(1).replaceAll("<[^>]*>", "")).toSeq
    val table = "(?s)<table id=\"zerohop-keepers\".*?</table>".r.findFirstIn(page).getOrElse("")
    val found = cells("th", table).zip(cells("td", table)).toMap
    found.withDefaultValue("0")
  }

  test("what the driver drops leaves the keeper") {
    val shuffled = keptShuffle()
    cluster.kill(youngest)
    cluster.awaitExecutors()
    assertReadAsItIs(shuffled)
    assert(left.nonEmpty)
    cluster.assertNothingHeld()
    Leftover.unless("the keeper holds nothing of the dead")(left.isEmpty)
  }
}

/** A keeper that has less memory than what executors leave: the rest is in files. */
@RunBy.Verify
class KeeperFilesSuite extends KeeperClusterSuite {
  override protected def settings: Map[String, String] = super.settings ++ Map(
    "spark.zerohop.keeper.size" -> "160m",
    "spark.local.dir" -> folder.resolve("local").toString)

  /** Names of files that keepers have; there is one only while it is opened. */
  private def names: Seq[Path] =
    Try(Using.resource(Files.walk(folder)) {
      _.iterator.asScala.filter(_.getFileName.toString.startsWith("zerohop-kept-")).toVector
    }).getOrElse(Vector.empty)

  test("what of killed executors has no room in memory is read from files") {
    val shuffles = (1 to 4).map { _ =>
      val shuffled = keptShuffle() // It is kept only where there is room.
      cluster.kill(youngest)
      cluster.awaitExecutors()
      shuffled
    }
    Bounded.until("outputs are in files", 30.seconds) {
      cluster.gauges("keeper.files.outputs").values.exists(_ > 0)
    }
    shuffles.foreach(assertReadAsItIs)
    Leftover.unless("files have no names")(names.isEmpty)
    cluster.assertNothingHeld()
    Leftover.unless("all is dropped") {
      cluster.gauges("keeper.files.bytes").values.forall(_ == 0)
    }
  }

  test("a keeper that is killed leaves no file") {
    val shuffled = keptShuffle()
    cluster.kill(youngest)
    cluster.awaitExecutors()
    killKeepers()
    val answer = cluster.run("read without the keeper")(Workload.answer(shuffled)((_, _) => ()))
    assert(answer === Workload.expected)
    Leftover.unless("no file is left")(names.isEmpty)
  }
}

/** Executors that idle are let go, and what they have published is read by those that come. */
@RunBy.Faults
class KeeperScaleDownSuite extends KeeperClusterSuite {
  override protected def settings: Map[String, String] = super.settings ++ Map(
    "spark.dynamicAllocation.enabled" -> "true",
    "spark.dynamicAllocation.initialExecutors" -> executors.toString,
    "spark.dynamicAllocation.maxExecutors" -> executors.toString,
    "spark.dynamicAllocation.executorIdleTimeout" -> "4s",
    "spark.dynamicAllocation.schedulerBacklogTimeout" -> "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout" -> "4s")

  // On a busy machine the first is let go before the second is there.
  override protected def await: Boolean = false

  test("no output is computed again of executors that were all let go, and all goes when dropped") {
    val shuffled = keptShuffle()
    awaitNoExecutors()
    assert(left.nonEmpty)
    assertReadAsItIs(shuffled)
    awaitNoExecutors()
    SparkInternals.removeShuffle(cluster.sc, SparkInternals.shuffleOf(shuffled).shuffleId)
    SparkInternals.shuffleIds(cluster.sc).foreach(SparkInternals.removeShuffle(cluster.sc, _))
    Leftover.unless("the keeper holds nothing, with no executor on the node")(left.isEmpty)
  }

  private def awaitNoExecutors(): Unit =
    Bounded.until("executors were let go", 60.seconds) {
      SparkInternals.executorIds(cluster.sc).isEmpty
    }
}

/** Executors that cannot share memory, after others that could. */
@RunBy.Faults
class KeeperBesideFilesSuite extends KeeperClusterSuite {

  test("an executor that shares no memory reads what a keeper has") {
    val shuffled = keptShuffle()
    val owners = cluster.pids.values.toSeq
    Cluster.kill(owners: _*)
    cluster.awaitExecutors()
    Bounded.until("the keeper serves what both have left", 30.seconds)(left.size == owners.size)
    // New executors listen at their first shuffle, and find a file where the folder was.
    val sockets = folder.resolve("s")
    Files.move(sockets, folder.resolve("before"))
    Files.createFile(sockets)
    assertReadAsItIs(shuffled)
    assert(cluster.gauges("pool.host.limit.bytes") === Map.empty)
  }
}
