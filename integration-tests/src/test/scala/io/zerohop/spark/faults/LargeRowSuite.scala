package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, RunBy}
import org.apache.spark.sql.functions.{col, expr, length, xxhash64}
import org.scalatest.funsuite.AnyFunSuite

/** Single rows of more than 1 GiB. They need 10 GiB of memory: the soak has them. */
@RunBy.Faults
class LargeRowSuite extends AnyFunSuite {
  private val bytes = 1100000000
  private val soak = Soak.runs > 3

  /** Of the id, or the optimizer would make it, and its length, in the driver. */
  private def text = expr(s"repeat('abcdefghij', cast(id + ${bytes / 10} as int))").as("text")

  for ((where, pool) <- Seq("in place" -> "2g", "from a file" -> "64m") if soak) {
    test(s"a row of SQL $where") {
      withCluster(pool) { cluster =>
        val sum = cluster.run("its hash, without a shuffle") {
          cluster.spark.range(0, 1, 1, 1).select(xxhash64(text)).collect().head.getLong(0)
        }
        val (row, paths) = cluster.counted(where, 10.minutes) {
          cluster.spark.range(0, 1, 1, 1)
            .select(col("id"), text)
            .repartition(1, col("id"))
            .select(length(col("text")), xxhash64(col("text")))
            .collect().toSeq
        }
        assert(row.map(_.toSeq) === Seq(Seq(bytes, sum)))
        if (ManagerUnderTest.isZerohop) {
          val (path, other) = if (pool == "2g") ("local", "staged") else ("staged", "local")
          assert(paths.bytes(other) === 0)
          // Compressed in a file.
          assert(paths.bytes(path) > (if (pool == "2g") bytes.toLong else 0))
        }
      }
    }
  }

  private def withCluster(pool: String)(body: Cluster => Unit): Unit = {
    val settings = Map(
      "spark.executor.memory" -> "5g",
      "spark.zerohop.pool.size" -> pool,
      "spark.network.timeout" -> "600s",
      "spark.task.maxFailures" -> "1")
    val cluster = new Cluster(1, settings, Some("local-cluster[1,1,6144]"))
    try body(cluster)
    finally cluster.close()
  }
}
