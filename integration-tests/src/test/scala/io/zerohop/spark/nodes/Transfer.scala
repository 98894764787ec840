package io.zerohop.spark.nodes

import java.nio.file.Path
import java.util.Random
import java.util.zip.CRC32

import io.zerohop.spark.faults.Fault
import org.apache.spark.{HashPartitioner, SparkContext}
import org.apache.spark.rdd.RDD

/**
 * A shuffle that no compression makes smaller, whose rows are known beforehand.
 *
 * @param records of 32 KiB each; 2,048 are blocks of 1 MiB
 */
final case class Transfer(records: Int) {
  import Transfer._

  /** After so many records a reduce task says that it is in the middle. */
  private val middleOfTask = records / Reducers / 4

  /** Every row, by id. */
  lazy val expected: Seq[Row] = (0 until records).map(id => (id, checksum(payload(id))))

  /** @param middle a file that the first reduce task makes which is in the middle of its records */
  def rdd(sc: SparkContext, middle: Path): RDD[Row] = {
    val fault = Fault(middle.toString)
    val index = middleOfTask
    sc.parallelize(0 until records, Maps)
      .map(id => (id, payload(id)))
      .partitionBy(new HashPartitioner(Reducers))
      .mapPartitions { records =>
        records.zipWithIndex.map { case ((id, bytes), place) =>
          if (place == index) fault.once("")(())
          (id, checksum(bytes))
        }
      }
  }

  def rows(transfer: RDD[Row]): Seq[Row] = transfer.collect().sorted.toSeq
}

object Transfer {
  private val Maps = 8
  private val Reducers = 8
  private val PayloadBytes = 32 << 10

  /** Id and checksum of a record. */
  type Row = (Int, Long)

  private def payload(id: Int): Array[Byte] = {
    val bytes = new Array[Byte](PayloadBytes)
    new Random(id).nextBytes(bytes)
    bytes
  }

  private def checksum(bytes: Array[Byte]): Long = {
    val sum = new CRC32
    sum.update(bytes)
    sum.getValue
  }
}
