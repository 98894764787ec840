package io.zerohop.workload

import java.nio.file.{Files, Path}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.commons.io.FileUtils
import org.apache.spark.sql.SparkSession
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** All queries of TPC-H run on tables of a small scale, where each of them still finds rows. */
@RunBy.Verify
class TpchSuite extends AnyFunSuite with BeforeAndAfterAll {
  private val scale = 0.01
  private val limit = 2.minutes
  private lazy val folder: Path = Files.createTempDirectory("tpch")
  private var spark: SparkSession = _

  override def beforeAll(): Unit = {
    start()
    // It ends the session that it finds.
    Bounded("the tables of TPC-H", limit) {
      TpchData.main(Array(folder.toString, scale.toString))
    }
    spark = start()
    TpchData.register(spark, folder.toString)
  }

  override def afterAll(): Unit = {
    Option(spark).foreach(_.stop())
    FileUtils.deleteDirectory(folder.toFile)
  }

  for (name <- Workload.TPCH.asScala)
    test(s"$name finds rows") {
      val rows = Bounded(name, limit)(spark.sql(Workload.named(name, scale).query).collect())
      assert(rows.nonEmpty)
      // No order is small enough for q17 at this scale, and a sum of nothing is null.
      assert(rows.exists(_.toSeq.contains(null)) === (name == "q17"))
    }

  test("q11's fraction is that of the scale") {
    assert(Workload.named("q11").query.contains("* 0.0001\n"))
    assert(Workload.named("q11", 10).query.contains("* 0.00001\n"))
    assert(Workload.named("q11", 30).query.contains("* 0.000003333333\n"))
  }

  test("the demo's queries are what they were") {
    assert(Workload.ALL.size === 14)
    assert(Workload.TPCH.asScala.toSeq === (1 to 22).map(number => s"q$number"))
    assert(intercept[IllegalArgumentException](Workload.named("q23")).getMessage.contains("q23"))
  }

  private def start(): SparkSession =
    SparkSession.builder()
      .master("local[2]")
      .appName("tpch")
      .config("spark.sql.shuffle.partitions", "2")
      // To compile a query would take longer than these few rows do.
      .config("spark.sql.codegen.wholeStage", "false")
      .getOrCreate()
}
