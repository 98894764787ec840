package io.zerohop.spark.versions

import java.nio.file.{Files, Path}

import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.scalatest.funsuite.AnyFunSuite

/** The tab GPU Shuffle, live and in the history server, on every supported Spark. */
@RunBy.Versions
class TabSuite extends AnyFunSuite with NeedsSparkHome {

  /** Where the log is also replayed without our jar: the oldest and the newest reader of logs. */
  private val Bare = Seq(SparkHomes.all.head, SparkHomes.all.last)

  for (home <- SparkHomes.all) {
    test(s"the tab says what tasks say, live and in the history server of $home") {
      assume(ManagerUnderTest.isZerohop, "the tab is Zerohop's")
      requireHome(home)
      val logs = VersionRuns.on(home).events
      val live = VersionRuns.on(home).tab
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
}
