package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.apache.spark.HashPartitioner
import org.apache.spark.zerohop.SparkInternals

/** Staged blocks that are too large for the heap, of a map output that is in memory. */
@RunBy.Faults
class LargeStagedBlockSuite extends ClusterSuite {
  import LargeStagedBlockSuite._

  override protected def settings: Map[String, String] = Map(
    "spark.zerohop.paths" -> "staged",
    "spark.zerohop.spill.start" -> "1",
    "spark.shuffle.compress" -> "false")

  test("what is asked for is written and no more, and its file goes when it has been sent") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has files only")
    val shuffled = cluster.sc
      .parallelize(Seq(0), 1)
      .flatMap(_ => (0 until Records).iterator.map(i => (i, record(i))))
      .partitionBy(new HashPartitioner(Partitions))
    val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, shuffled))
    val (sums, bytes) = cluster.counted("reads") {
      (0 until Times).flatMap(_ => shuffled.map { case (i, data) => (i, check(data)) }.collect())
    }
    assert(sums.toSet === (0 until Records).map(i => (i, i * 31L)).toSet)
    assert(bytes.finishedMapTasks === 0)
    assert(bytes.bytes("staged") > Times.toLong * Records * RecordBytes)
    assert(cluster.gauges("files.bytes").values.sum === 0, "whole map outputs were written")
    assert(temporaryFiles === Set.empty)
    SparkInternals.removeShuffle(cluster.sc, id)
    cluster.assertNothingHeld()
  }

  /** In all executors' local directories, of what is sent or received. */
  private def temporaryFiles: Set[String] =
    cluster.onEach("temporary files") { () =>
      SparkInternals.localFiles.filter(_.startsWith("temp_")).toSet
    }.values.flatten.toSet
}

private object LargeStagedBlockSuite {
  val Partitions = 4
  val RecordBytes: Int = 1 << 20

  /** So that each block has 40 MiB. */
  val Records: Int = Partitions * 40

  /** How often all is read, so that each executor reads blocks of its own and of the other. */
  val Times = 4

  /** The index at the end, so that a record that was cut or moved shows. */
  def record(i: Int): Array[Byte] = {
    val record = new Array[Byte](RecordBytes)
    java.nio.ByteBuffer.wrap(record).putInt(RecordBytes - 4, i)
    record
  }

  def check(record: Array[Byte]): Long =
    java.nio.ByteBuffer.wrap(record).getInt(record.length - 4) * 31L
}
