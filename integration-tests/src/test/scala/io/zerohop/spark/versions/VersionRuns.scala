package io.zerohop.spark.versions

import java.nio.file.{Files, Path, Paths}

import scala.collection.mutable

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.Local

/** What one application has said on a Spark home: of its shuffles, and of the tab if there is one. */
final case class VersionRun(shuffles: Map[String, String], tab: Map[String, String], events: Path)

/** One start of driver and executors on each Spark home, for all suites that ask what became of it. */
object VersionRuns {
  private val conf = Map(
    "spark.master" -> "local-cluster[2,1,1024]",
    "spark.executor.memory" -> "512m",
    "spark.shuffle.manager" -> ManagerUnderTest.name,
    "spark.zerohop.pool.size" -> "128m",
    "spark.sql.shuffle.partitions" -> "4")

  private val runs = mutable.Map.empty[SparkHome, VersionRun]

  /** Fails if the application has; the next who asks has it run again. */
  def on(home: SparkHome): VersionRun = synchronized(runs.getOrElseUpdate(home, run(home)))

  private def run(home: SparkHome): VersionRun = {
    val events = Paths.get(
      sys.props("zerohop.test.target"), "versions", s"${home.version}_${home.scala}", "events")
    if (Files.exists(events)) Local.delete(events)
    Files.createDirectories(events)
    // The tab is Zerohop's.
    val ended =
      if (ManagerUnderTest.isZerohop)
        SparkSubmitProcess.run(
          home, conf, classOf[TabApp].getName, AppJar.path, Seq(events.toUri.toString))
      else SparkSubmitProcess.run(home, conf, classOf[ShuffleApp].getName, AppJar.path)
    assert(ended.exit == 0, s"see ${ended.log}")
    // Nothing of an Apache Spark is missing, and nothing makes Zerohop step aside.
    assert(!Files.readString(ended.log).contains("[ZH-100"), s"see ${ended.log}")
    val tab =
      if (ManagerUnderTest.isZerohop) AppJar.report(ended.stdout, "tab-app:")
      else Map.empty[String, String]
    VersionRun(AppJar.report(ended.stdout, "shuffle-app:"), tab, events)
  }
}
