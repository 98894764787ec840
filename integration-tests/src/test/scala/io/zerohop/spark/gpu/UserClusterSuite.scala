package io.zerohop.spark.gpu

import scala.jdk.CollectionConverters._

import io.zerohop.spark.support.{Bounded, Facts, RunBy, ScenarioApplication}
import org.apache.spark.sql.SparkSession
import org.scalatest.{BeforeAndAfterAll, Canceled, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/**
 * Queries and faults on a [[UserCluster]], and a report of them. What it gives not (a path, a second
 * node) is canceled, with a reason.
 */
@RunBy.Gpu
class UserClusterSuite extends AnyFunSuite with BeforeAndAfterAll {
  import UserClusterSuite._

  private lazy val report =
    new ClusterReport(UserCluster.master.get, UserCluster.showsHosts)
  private var running: Option[(Map[String, String], ScenarioApplication)] = None
  private var (applications, started) = (0, 0)
  private var facts: Option[Facts] = None

  /** Ways that bytes went in applications at the cluster's own paths. */
  private var ways = Set.empty[String]

  /** Rows of Spark's own shuffle in this process, by query. */
  private lazy val expected: () => Map[String, Seq[String]] = Bounded.async {
    val spark = SparkSession.builder().master("local[2]").config("spark.shuffle.manager", "sort")
      .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    try {
      spark.sql(Questions.Table)
      Queries.map(one => one -> QueryScenarios.sorted(spark.sql(Questions.all(one).query))).toMap
    } finally spark.stop()
  }

  /** How many executors each host has, as the first application says. */
  private lazy val nodes: Map[String, Int] = {
    expected // It is worked out meanwhile.
    val about = asked(Common)("describe")
    report.describe(about)
    about.value("executors").elements.asScala.toSeq.groupBy(_.get("host").asText)
      .map { case (host, there) => host -> there.size }
  }

  override protected def withFixture(test: NoArgTest): Outcome =
    UserCluster.missing.map(Canceled(_)).getOrElse {
      facts = None
      report.record(test.name, facts)(super.withFixture(test))
    }

  override protected def afterAll(): Unit =
    try {
      stop()
      if (UserCluster.master.nonEmpty) report.write(UserCluster.folder)
    } finally super.afterAll()

  test("the application describes the cluster") {
    assert(nodes.values.sum === UserCluster.executors)
  }

  for (query <- Queries)
    test(s"rows are those of Spark's own shuffle: $query")(seen(exact(Common, query)))

  test("rows at Spark's defaults, where small tables are broadcast") {
    for (query <- Queries) {
      val facts = asked(Defaults)(query)
      assert(facts.text("digest") === QueryScenarios.digest(expected()(query)), query)
      assert(facts.flag("equal") && facts.flag("static_equal"), facts)
    }
  }

  test("an executor ends while it writes") {
    assert(survived("halted_in_write").number("lost_executors") > 0)
  }

  test("an executor ends while it reads, and others read from it") {
    val facts = survived("halted_in_read")
    assert(facts.number("lost_executors") > 0)
    assert(facts.number("map_tasks") >= FaultyQuery.Maps)
  }

  test("an executor is removed between two stages, and another one added") {
    assert(survived("executor_taken").flag("happened"))
  }

  test("an executor is decommissioned between two stages") {
    assert(survived("executor_decommissioned").flag("happened"))
  }

  test("a slow task is attempted a second time") {
    if (nodes.size < 2) cancel("Spark attempts a task again on another node, and there is one")
    assert(survived("attempted_twice").number("speculative_tasks") > 0)
  }

  test("path local: an executor's own blocks")(went("local"))

  test("path peer: blocks of executors of the same node") {
    if (nodes.values.forall(_ < 2)) cancel("no two executors are on one node")
    if (UserCluster.settings.contains(Paths)) cancel(s"$Paths is set")
    went("peer")
  }

  test("path sent: blocks that owners send over Spark's connections")(went("sent"))

  test("path ucx: blocks that readers get from other nodes' memory") {
    if (!UserCluster.trustsNetwork) cancel("spark.zerohop.ucx.trustedNetwork is not true")
    went("ucx")
  }

  test("path staged: blocks in files, by Spark's own transfer")(went("staged"))

  test("dynamic allocation removes and adds executors during a job") {
    val facts = asked(Dynamic)("resized")
    assert(facts.flag("equal"), facts)
    assert(facts.number("removed") > 0, facts)
    assert(facts.number("added") > 0, facts)
  }

  /** At the cluster's own paths if these have it, else in an application that has no other. */
  private def went(path: String): Unit =
    if (!ways(path)) Queries.take(2).foreach { query =>
      if (path == "local" || path == "peer") fail(s"no bytes went by it, but by $ways")
      val only = if (path == "staged") path else s"local,$path,staged"
      val bytes = ClusterReport.bytesOf(exact(Common + (Paths -> only), query))
      assert(bytes(path) > 0, bytes)
    }

  private def exact(settings: Map[String, String], query: String): Facts = {
    val facts = asked(settings)(query)
    assert(facts.text("digest") === QueryScenarios.digest(expected()(query)), "of the CPU's rows")
    assert(facts.flag("equal") && facts.flag("static_equal"), facts)
    if (UserCluster.hasRapids) assert(facts.number("gpu_exchanges") > 0, facts)
    facts
  }

  private def survived(fault: String): Facts = {
    val facts = asked(Common)(fault)
    assert(facts.flag("equal"), facts)
    seen(facts)
    facts
  }

  private def seen(facts: Facts): Unit =
    ways ++= ClusterReport.bytesOf(facts).collect { case (path, bytes) if bytes > 0 => path }

  /** Asks an application with such settings. After an error another one is asked. */
  private def asked(settings: Map[String, String])(scenario: String): Facts = {
    if (running.exists(_._1 != settings)) stop()
    if (started == 0 && applications > 0) cancel("the first application did not start")
    if (running.isEmpty) {
      applications += 1
      running = Some(settings -> UserCluster.start(s"application-$applications", settings))
      started += 1
    }
    try {
      val answer = running.get._2.ask(scenario)
      facts = Some(answer)
      answer
    } catch {
      case e: Throwable =>
        stop()
        throw e
    }
  }

  private def stop(): Unit = {
    running.foreach(_._2.close())
    running = None
  }
}

private object UserClusterSuite {
  private val Paths = "spark.zerohop.paths"
  private val Queries = Seq("group_by", "join", "round_robin", "coalesced", "skewed_join")

  /** Instead of the suite's own, which has every query shuffle, and little. */
  private val Defaults = Map(
    "spark.sql.autoBroadcastJoinThreshold" -> "10MB",
    "spark.sql.shuffle.partitions" -> "200")

  /** With which executors may leave, and slow tasks are attempted again. */
  private val Common = Map(
    "spark.decommission.enabled" -> "true",
    "spark.storage.decommission.enabled" -> "true",
    "spark.storage.decommission.shuffleBlocks.enabled" -> "true",
    "spark.storage.decommission.replicationReattemptInterval" -> "1s",
    "spark.speculation" -> "true",
    "spark.speculation.interval" -> "100ms",
    "spark.speculation.minTaskRuntime" -> "2s",
    "spark.speculation.quantile" -> "0.5")

  /** With tracking, executors would stay while the job may need their shuffles. */
  private val Dynamic = Common ++ Map(
    "spark.dynamicAllocation.enabled" -> "true",
    "spark.dynamicAllocation.shuffleTracking.enabled" -> "false",
    "spark.dynamicAllocation.minExecutors" -> "1",
    "spark.dynamicAllocation.maxExecutors" -> UserCluster.executors.toString,
    "spark.dynamicAllocation.executorIdleTimeout" -> "1s",
    "spark.dynamicAllocation.schedulerBacklogTimeout" -> "1s")
}
