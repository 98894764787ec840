package io.zerohop.workload

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import io.trino.tpcds.{Results, Session, Table}
import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.spark.sql.{SparkSession, TPCDSSchema}
import org.apache.spark.sql.functions.{bit_xor, col, count, lit, sum, xxhash64}
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** TPC-DS' tables are the generator's, and the same in however many parts they are drawn. */
@RunBy.SparkSuites
class TpcdsDataSuite extends AnyFunSuite with BeforeAndAfterAll with TPCDSSchema {
  private val scale = 0.01
  private val limit = 2.minutes
  // These two are as long at every scale, and are made of their rows' numbers alone.
  private val long = Set("customer_demographics", "time_dim")
  // Each of their rows costs a lot; the third of their kind, web_sales, is short.
  private val costly = Set("store_sales", "catalog_sales")
  private var spark: SparkSession = _

  override def beforeAll(): Unit =
    spark = SparkSession.builder()
      .master("local[2]")
      .appName("tpcds-data")
      .config("spark.sql.shuffle.partitions", "2")
      .getOrCreate()

  override def afterAll(): Unit = Option(spark).foreach(_.stop())

  test("names and types are those of Spark's own tests") {
    assert(TpcdsData.names.asScala.toSet === tableColumns.keySet)
    for (name <- TpcdsData.names.asScala)
      assert(TpcdsData.schema(name) === unbounded(StructType.fromDDL(tableColumns(name))), name)
  }

  for (name <- TpcdsData.names.asScala if !long(name))
    test(s"$name is the same in one part and in five") {
      val whole = digest(name, 1)
      if (!costly(name)) assert(whole.head === generated(name))
      val parts = TpcdsData.parts(name, scale, 5)
      if (parts > 1) assert(digest(name, parts) === whole)
      else assert(Table.getTable(name).keepsHistory || generated(name) < 5)
    }

  test("what is big at scale 1 is drawn in several parts") {
    val big = TpcdsData.names.asScala.filter(TpcdsData.parts(_, 1.0, 5) == 5).toSet
    assert(Set("store_sales", "catalog_returns", "inventory", "customer").subsetOf(big))
  }

  /** Row count and hashes that do not depend on the rows' order. */
  private def digest(name: String, parts: Int): Seq[Any] = {
    val hashed = TpcdsData.rows(spark, name, scale, parts)
    Bounded(name, limit) {
      hashed.select(xxhash64(hashed.columns.map(col).toIndexedSeq: _*).as("h"))
        .agg(count(lit(1)), bit_xor(col("h")), sum(col("h").bitwiseAND(0xffffffL)))
        .head().toSeq
    }
  }

  /** How many rows the generator has for a table when it is asked for all at once. */
  private def generated(name: String): Long = {
    val table = Table.getTable(name)
    val session = Session.getDefaultSession.withScale(scale).withTable(table)
    Results.constructResults(table, session).asScala.size.toLong
  }

  /** The schema with characters of any number. */
  private def unbounded(schema: StructType): StructType =
    StructType(schema.map { field =>
      field.copy(dataType = field.dataType match {
        case text: DataType if text.catalogString.matches("(var)?char.*") => StringType
        case other => other
      })
    })
}
