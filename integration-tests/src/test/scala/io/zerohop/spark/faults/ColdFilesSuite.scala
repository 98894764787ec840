package io.zerohop.spark.faults

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.shuffle.block.DamagedOutputException
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer
import io.zerohop.shuffle.catalog.MapOutputLease
import io.zerohop.shuffle.ShuffleNode
import io.zerohop.shuffle.conf.Config
import io.zerohop.shuffle.write.MapOutput.PackSource
import io.zerohop.spark.outputfiles.MapOutputFiles
import io.zerohop.spark.support.RunBy
import org.apache.commons.io.FileUtils
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.storage.ShuffleBlockId
import org.apache.spark.unsafe.Platform
import org.apache.spark.zerohop.SparkInternals
import org.scalatest.funsuite.AnyFunSuite

/** Map outputs that leave memory for files, intact and damaged, in each way in which files are. */
@RunBy.Faults
class ColdFilesSuite extends AnyFunSuite {
  import ColdFilesSuite._

  test("plain files: what is damaged in memory is found in the file, and only that") {
    inSpark("spark.shuffle.compress" -> "false") { (files, lease, _) =>
      flip(damageable(lease))
      files.store(Shuffle, Map, lease)
      for (partition <- 0 until Partitions) {
        val id = ShuffleBlockId(Shuffle, Map, partition)
        val stored = SparkInternals.storedBlock(id)
        if (partition == Damaged) {
          val failure = intercept[IOException](files.verify(id, stored))
          assert(failure.getMessage.contains("damaged in its file"))
        } else {
          files.verify(id, stored)
          assert(SparkInternals.plainBytes(id, stored) === block(partition))
        }
      }
    }
  }

  for (setting <- Seq("spark.shuffle.compress", "spark.io.encryption.enabled"))
    test(s"$setting: what is damaged in memory gets no file and no new checksum") {
      inSpark("spark.shuffle.compress" -> "false", setting -> "true") { (files, lease, dir) =>
        val address = damageable(lease)
        flip(address)
        val failure = intercept[DamagedOutputException](files.store(Shuffle, Map, lease))
        assert(failure.getMessage.contains(s"partition $Damaged"))
        assert(!files.holds(Shuffle, Map))
        assert(shuffleFiles(dir) === Nil)
        flip(address)
        files.store(Shuffle, Map, lease)
        for (partition <- 0 until Partitions) {
          val id = ShuffleBlockId(Shuffle, Map, partition)
          files.verify(id, SparkInternals.storedBlock(id))
          assert(SparkInternals.plainBytes(id, SparkInternals.storedBlock(id)) === block(partition))
        }
        files.unregisterShuffle(Shuffle)
        assert(shuffleFiles(dir) === Nil)
      }
    }
}

private object ColdFilesSuite {
  private val Shuffle = 1
  private val Map = 2L
  private val Partitions = 5
  private val Damaged = 3
  private val BlockBytes = 30000

  private def block(partition: Int): Array[Byte] =
    Array.tabulate(BlockBytes)(at => (at * 7 + at / 100 + partition).toByte)

  /** Runs with a map output in the memory of a node, and Spark's local directory. */
  private def inSpark(settings: (String, String)*)(
      body: (MapOutputFiles, MapOutputLease, Path) => Unit): Unit = {
    val dir = Files.createTempDirectory("zerohop-cold")
    val conf = new SparkConf()
      .setMaster("local[1]")
      .setAppName("zerohop-cold")
      .set("spark.local.dir", dir.toString)
      .set("spark.shuffle.manager", "sort") // Its resolver has Spark's files and nothing else.
      .setAll(settings)
    val spark = new SparkContext(conf)
    try {
      val config = new ShuffleNode.Setup(
        Config.defaults,
        spark.applicationId,
        "1",
        "a secret of this test".getBytes(UTF_8))
        .set("pool.size", 16 << 20)
        .set("segment.size", 4 << 20)
        .set("spill.start", 1)
      Using.resource(ShuffleNode.start(config)) { node =>
        write(node)
        Using.resource(node.lease(Shuffle, Map))(body(SparkInternals.mapOutputFiles, _, dir))
        node.unregisterShuffle(Shuffle)
      }
    } finally {
      spark.stop()
      FileUtils.deleteDirectory(dir.toFile)
    }
  }

  private def write(node: ShuffleNode): Unit = {
    val address = Platform.allocateMemory(Partitions * BlockBytes)
    try {
      for (partition <- 0 until Partitions) {
        val at = address + partition * BlockBytes
        Platform.copyMemory(block(partition), Platform.BYTE_ARRAY_OFFSET, null, at, BlockBytes)
      }
      Using.resource(node.newMapOutput(Shuffle, Map, Partitions)) { writer =>
        writer.append(new PackSource {
          override def partitions: Int = Partitions
          override def forEachChunk(partition: Int, consumer: ExtentConsumer): Unit =
            consumer.extent(address + partition * BlockBytes, BlockBytes)
        })
        writer.commit()
      }
    } finally Platform.freeMemory(address)
  }

  /** Where one byte of the block lies that the tests damage. A lease gives no damaged block. */
  private def damageable(lease: MapOutputLease): Long = {
    var address = 0L
    lease.forEachExtent(Damaged, (start, length) => address = start + length / 2)
    address
  }

  /** Flips a bit of a byte in memory, or back. */
  private def flip(address: Long): Unit =
    Platform.putByte(null, address, (Platform.getByte(null, address) ^ 1).toByte)

  private def shuffleFiles(dir: Path): Seq[String] =
    Using.resource(Files.walk(dir)) {
      _.iterator.asScala.map(_.getFileName.toString).filter(_.startsWith("shuffle_")).toList
    }
}
