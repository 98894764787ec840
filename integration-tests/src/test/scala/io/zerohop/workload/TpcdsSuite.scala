package io.zerohop.workload

import java.nio.file.{Files, Path}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import io.zerohop.spark.support.{Bounded, Cluster, RunBy}
import io.zerohop.spark.suites.ManagerUnderTest
import org.apache.commons.io.FileUtils
import org.apache.spark.sql.{Row, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/**
 * TPC-DS' queries are all there, and some of them, on a small scale and at Spark's defaults, return
 * through Zerohop what they return through sort shuffle, by plans of the same shape.
 */
@RunBy.Verify
class TpcdsSuite extends AnyFunSuite with BeforeAndAfterAll {
  // A subquery, a join of two facts, and ties at the limit.
  private val queries = Seq("q1", "q50", "q65").map("tpcds:" + _)
  private val tables =
    java.util.List.of("store_sales", "store_returns", "date_dim", "store", "customer", "item")
  private val limit = 2.minutes
  private val attempts = 4
  private lazy val folder: Path = Files.createTempDirectory("tpcds")

  private case class Seen(answer: Answer, shape: PlanShape)

  override def afterAll(): Unit = FileUtils.deleteDirectory(folder.toFile)

  test("there are 103 queries, which the tables' columns suffice for") {
    assert(Workload.TPCDS.size === 103)
    assert(Workload.TIED.asScala.forall(Workload.TPCDS.contains))
    withLocal { spark =>
      for (name <- TpcdsData.names.asScala)
        spark.createDataFrame(java.util.List.of[Row](), TpcdsData.schema(name))
          .createOrReplaceTempView(name)
      for (name <- Workload.TPCDS.asScala) {
        val workload = Workload.named(name)
        val query = spark.sql(workload.query)
        assert(query.queryExecution.analyzed.resolved, name)
        assert(!workload.mayTie || SortedLimit.of(query).isPresent, s"$name has nothing that ties")
      }
    }
  }

  test("rows and plans are those of sort shuffle") {
    assume(ManagerUnderTest.isZerohop, "both are compared")
    withLocal { spark =>
      Bounded("tables of TPC-DS", limit)(TpcdsData.write(spark, tables, folder.toString, 0.01))
    }
    val first = seen("sort", queries)((_, _) => true)
    // The order in which stages end can change a plan, such as whether one exchange is used twice.
    // So one that differs is made again: by ours, and if it still differs by sort shuffle, too.
    val ours = seen("io.zerohop.spark.ZerohopShuffleManager", queries)((name, seen) =>
      differences(seen, first(name)).isEmpty)
    val others = queries.filter(name => differences(ours(name), first(name)).nonEmpty)
    val theirs =
      if (others.isEmpty) first
      else first ++ seen("sort", others)((name, seen) => differences(ours(name), seen).isEmpty)
    for (name <- queries) {
      assert(ours(name).answer.differences(theirs(name).answer).asScala === Nil, name)
      assert(differences(ours(name), theirs(name)) === Nil, name)
      assert(ours(name).answer.rows > 0, name)
    }
    val shapes = ours.values.map(_.shape)
    assert(shapes.exists(_.shuffles > 1) && shapes.exists(_.dataSize > 0))
    assert(shapes.exists(_.broadcasts > 0) && shapes.exists(!_.readPartitions.isEmpty))
    assert(
      shapes.flatMap(_.joins.asScala).exists(_.startsWith("BroadcastHashJoinExec Inner Build")))
    assert(shapes.toSet[PlanShape].exists(one => shapes.exists(!_.differences(one).isEmpty)))
  }

  private def differences(ours: Seen, theirs: Seen): Seq[String] =
    ours.shape.differences(theirs.shape).asScala.toSeq

  /**
   * What the queries return through a shuffle; all that is set is what the cluster needs.
   *
   * @param enough whether a query that was seen need not run again
   */
  private def seen(manager: String, names: Seq[String])(
      enough: (String, Seen) => Boolean): Map[String, Seen] = {
    val cluster = new Cluster(2, Map("spark.shuffle.manager" -> manager), shape = Cluster.Plain)
    try {
      TpcdsData.register(cluster.spark, tables, folder.toString)
      names.map { name =>
        val runs = Iterator.fill(attempts)(run(cluster, Workload.named(name)))
        var last = runs.next()
        while (!enough(name, last) && runs.hasNext) last = runs.next()
        name -> last
      }.toMap
    } finally cluster.close()
  }

  private def run(cluster: Cluster, workload: Workload): Seen = {
    val query = cluster.spark.sql(workload.query)
    val rows = cluster.run(workload.name, limit)(query.collectAsList())
    Seen(Answer.of(workload, query, rows), PlanShape.of(query.queryExecution.executedPlan))
  }

  private def withLocal(body: SparkSession => Unit): Unit = {
    val spark = SparkSession.builder().master("local[2]").appName("tpcds").getOrCreate()
    try body(spark)
    finally spark.stop()
  }
}
