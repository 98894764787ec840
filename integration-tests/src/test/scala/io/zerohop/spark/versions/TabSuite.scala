package io.zerohop.spark.versions

import java.nio.file.{Files, Path}

import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Local, RunBy}
import org.scalatest.funsuite.AnyFunSuite

/** The tab GPU Shuffle, live and in the history server, on every supported Spark. */
@RunBy.Versions
class TabSuite extends AnyFunSuite with NeedsSparkHome {
  private val conf = Map(
    "spark.master" -> "local-cluster[2,1,1024]",
    "spark.executor.memory" -> "512m",
    "spark.shuffle.manager" -> ManagerUnderTest.name,
    "spark.zerohop.pool.size" -> "128m",
    "spark.sql.shuffle.partitions" -> "4")

  /** Where the log is also replayed without our jar: the oldest and the newest reader of logs. */
  private val Bare = Seq(SparkHomes.all.head, SparkHomes.all.last)

  for (home <- SparkHomes.all) {
    test(s"the tab says what tasks say, live and in the history server of $home") {
      assume(ManagerUnderTest.isZerohop, "the tab is Zerohop's")
      requireHome(home)
      val logs = Files.createTempDirectory("zerohop-tab")
      val live = run(home, logs)
      for (path <- Seq("local", "peer")) {
        assert(live(path).toLong > 0)
        assert(live(s"tab.$path") === live(path))
      }
      assert(live("tab.doctor").toBoolean)
      val id = live("id")
      Using.resource(new HistoryServerProcess(home, logs, Seq(SparkHomes.zerohopJar))) { server =>
        server.await(id)
        val (status, page) = server.get(s"/history/$id/zerohop/")
        assert(status === 200, s"see ${server.log}")
        assert(TabApp.isAdvised(page), s"see ${server.log}")
        for (path <- Seq("local", "peer"))
          assert(TabApp.bytes(page, path) === live(path).toLong, s"by $path, see ${server.log}")
      }
      if (Bare.contains(home)) withoutJar(home, logs, id)
      Local.delete(logs)
    }
  }

  private def withoutJar(home: SparkHome, logs: Path, id: String): Unit =
    Using.resource(new HistoryServerProcess(home, logs, Nil)) { server =>
      server.await(id)
      val (status, page) = server.get(s"/history/$id/jobs/")
      assert(status === 200 && page.contains("Completed Jobs"), s"see ${server.log}")
      assert(!page.contains("GPU Shuffle"))
      assert(server.get(s"/history/$id/stages/")._2.contains("Completed Stages"))
      val skipped = Files
        .readString(server.log)
        .contains("Drop unrecognized event: io.zerohop.spark.ui.ShuffleReportEvent")
      assert(skipped, s"see ${server.log}")
    }

  private def run(home: SparkHome, logs: Path): Map[String, String] = {
    val ended = SparkSubmitProcess.run(
      home, conf, classOf[TabApp].getName, AppJar.path, Seq(logs.toUri.toString))
    assert(ended.exit === 0, s"see ${ended.log}")
    AppJar.report(ended.stdout, "tab-app:")
  }
}
