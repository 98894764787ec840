package io.zerohop.spark.faults

import java.util.zip.CRC32

import scala.util.Random

import org.apache.spark.{HashPartitioner, SparkContext, TaskContext}

/**
 * A shuffle of random records, most of them small and a few large, whose tasks dawdle and fail at
 * random. All of it follows from the seed, so the result is known beforehand.
 *
 * @param failOneIn of that many first attempts one fails, somewhere in the middle
 */
final case class Pressure(
    seed: Int,
    maps: Int = 200,
    reducers: Int = 40,
    mostRecords: Int = 400,
    failOneIn: Int = 15)
    extends Serializable {
  import Pressure._

  /** Records and the sum of their checks, by reduce partition. */
  type Answer = Map[Int, (Long, Long)]

  lazy val expected: Answer = {
    val sums = Array.fill(reducers)((0L, 0L))
    (0 until maps).iterator.flatMap(records).foreach { record =>
      val partition = math.floorMod(record._1, reducers)
      sums(partition) = (sums(partition)._1 + 1, sums(partition)._2 + check(record))
    }
    sums.indices.map(partition => partition -> sums(partition)).toMap
  }

  /** Bytes of all payloads; blocks have a few more. */
  lazy val bytes: Long = (0 until maps).iterator.flatMap(records).map(_._2.length.toLong).sum

  def answer(sc: SparkContext): Answer =
    sc.parallelize(0 until maps, maps)
      .flatMap(map => troubled(map, records(map)))
      .partitionBy(new HashPartitioner(reducers))
      .mapPartitionsWithIndex { (partition, records) =>
        val found = troubled(maps + partition, records)
          .foldLeft((0L, 0L))((sum, record) => (sum._1 + 1, sum._2 + check(record)))
        Iterator((partition, found))
      }
      .collect()
      .toMap

  private def records(map: Int): Iterator[(Int, Array[Byte])] = {
    val random = new Random(seed * 31L + map)
    Iterator.fill(random.nextInt(mostRecords)) {
      val most = if (random.nextInt(LargeOneIn) == 0) LargeBytes else SmallBytes
      val payload = new Array[Byte](random.nextInt(most))
      random.nextBytes(payload)
      (random.nextInt(), payload)
    }
  }

  /** The same records, by a task that takes its time, and now and then fails at its first attempt. */
  private def troubled(
      task: Int,
      records: Iterator[(Int, Array[Byte])]): Iterator[(Int, Array[Byte])] = {
    val random = new Random(seed * 17L + task)
    val fails = TaskContext.get().attemptNumber() == 0 && random.nextInt(failOneIn) == 0
    val failAt = if (fails) random.nextInt(mostRecords / 4) else -1
    records.zipWithIndex.map { case (record, index) =>
      if (index == failAt) throw new RuntimeException(s"$Injected in task $task")
      if (random.nextInt(PauseOneIn) == 0) Thread.sleep(random.nextInt(LongestPauseMillis).toLong)
      record
    }
  }

  private def check(record: (Int, Array[Byte])): Long = {
    val crc = new CRC32
    crc.update(record._2)
    record._1.toLong * 31 + crc.getValue
  }
}

object Pressure {
  val Injected = "injected failure"
  private val SmallBytes = 2000
  private val LargeBytes = 170000
  private val LargeOneIn = 20
  private val PauseOneIn = 100
  private val LongestPauseMillis = 15
}
