package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, PathBytes, RunBy}
import org.apache.spark.HashPartitioner
import org.apache.spark.sql.SparkSession
import org.scalatest.funsuite.AnyFunSuite

/** One block of more than 2 GiB, where offsets outgrow an int. */
@RunBy.Faults
class LargeBlockSuite extends AnyFunSuite {
  private val records = 2200
  private val recordBytes = 1 << 20

  test("a block of more than 2 GiB in place") {
    val bytes = move("spark.zerohop.pool.size" -> "3g")
    if (ManagerUnderTest.isZerohop) {
      assert(bytes.bytes("local") + bytes.bytes("peer") > (2L << 30))
      assert(bytes.bytes("staged") === 0)
    }
  }

  test("a block of more than 2 GiB from a file") {
    val bytes = move("spark.zerohop.pool.size" -> "64m", "spark.zerohop.paths" -> "staged")
    if (ManagerUnderTest.isZerohop) assert(bytes.bytes("staged") > (2L << 30))
  }

  private def move(settings: (String, String)*): PathBytes = {
    val more = Seq("spark.executor.memory" -> "1g", "spark.zerohop.segment.size" -> "128m",
      "spark.shuffle.compress" -> "false")
    Cluster.withCluster(1, settings ++ more: _*) { cluster =>
      val (sums, bytes) = cluster.counted(settings.mkString(" ")) {
        LargeBlockSuite.sums(cluster.spark, records, recordBytes)
      }
      assert(sums === (0 until records).map(i => (i, recordBytes, i * 31L)).toSet)
      bytes
    }
  }
}

private object LargeBlockSuite {

  /** Sends every record through one block and tells of each what arrived. */
  def sums(spark: SparkSession, records: Int, recordBytes: Int): Set[(Int, Int, Long)] =
    spark.sparkContext
      .parallelize(Seq(0), 1)
      .flatMap(_ => Iterator.tabulate(records)(i => (i, record(i, recordBytes))))
      .partitionBy(new HashPartitioner(1))
      .map { case (i, bytes) => (i, bytes.length, check(bytes)) }
      .collect()
      .toSet

  /** The index at the end, so that a record that was cut or moved shows. */
  private def record(i: Int, bytes: Int): Array[Byte] = {
    val record = new Array[Byte](bytes)
    java.nio.ByteBuffer.wrap(record).putInt(bytes - 4, i)
    record
  }

  private def check(record: Array[Byte]): Long =
    java.nio.ByteBuffer.wrap(record).getInt(record.length - 4) * 31L
}
