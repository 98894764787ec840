package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.functions.col

/**
 * Queries one after the other in a pool that may be half full when one begins, and has room for it
 * beside that: a writer that finds no room goes to a file at once, whoever would make some. No
 * shuffle grows cold here, so only those of finished queries are moved.
 */
@RunBy.Faults
class FinishedQueriesSuite extends ClusterSuite {
  private val Rows = 80000L

  override protected def settings: Map[String, String] = Map(
    "spark.zerohop.pool.size" -> "32m",
    "spark.zerohop.segment.size" -> "4m",
    "spark.zerohop.write.buffer" -> "1m",
    "spark.zerohop.spill.start" -> "0.5",
    "spark.zerohop.spill.idle" -> "1h",
    // Spark 4 drops them at a query's end while it is tested.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled" -> "false")

  test("a finished query makes room for the next one, and is read again") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no pool")
    val first = query(1)
    val second = query(2)
    val (answer, _) = cluster.counted("first query")(total(first.collect().toSeq))
    assert(answer === expected(1))
    Bounded.until("the pools are relieved", 30.seconds) {
      cluster.gauges("pool.host.used.bytes").values.forall(_ <= (16 << 20))
    }
    val (next, seen) = cluster.counted("second query")(total(second.collect().toSeq))
    assert(next === expected(2))
    assert(seen.bytes("local") + seen.bytes("peer") > Rows * 100)
    assert(seen.bytes("staged") === 0, "blocks of a running query went to files")
    Bounded.until("all that moved is of the finished query", 10.seconds) {
      val spilled = cluster.gauges("spill.files.bytes")
      spilled.values.sum > 0 && cluster.gauges("spill.files.finished.bytes") == spilled
    }

    // On a slow machine the second one has finished, too, before anything is moved.
    val (again, reread) = cluster.counted("both again") {
      (total(first.collect().toSeq), total(second.collect().toSeq))
    }
    assert(again === ((expected(1), expected(2))))
    assert(reread.finishedMapTasks === 0, "what had moved was computed again")
    assert(reread.bytes("staged") > 0)
    cluster.assertNothingHeld()
  }

  /**
   * Shuffles some 10 MB in each executor, and nothing behind that: what is read again is what it
   * has shuffled, and not the small shuffle of an aggregate.
   */
  private def query(seed: Int): Dataset[(Long, Long)] = {
    val spark = cluster.spark
    import spark.implicits._
    spark
      .range(0, Rows, 1, 8)
      .selectExpr(s"id * $seed as id", "repeat(cast(id % 10 as string), 200) as text")
      .repartition(8, col("id"))
      .as[(Long, String)]
      .mapPartitions(FinishedQueriesSuite.sums)
  }

  private def total(parts: Seq[(Long, Long)]): (Long, Long) =
    (parts.map(_._1).sum, parts.map(_._2).sum)

  private def expected(seed: Int): (Long, Long) = (seed * Rows * (Rows - 1) / 2, Rows * 200)
}

object FinishedQueriesSuite {

  /** Of the ids, and of the lengths of the texts, of one partition. */
  private val sums = (rows: Iterator[(Long, String)]) =>
    Iterator(rows.foldLeft((0L, 0L)) { case ((ids, bytes), (id, text)) =>
      (ids + id, bytes + text.length)
    })
}
