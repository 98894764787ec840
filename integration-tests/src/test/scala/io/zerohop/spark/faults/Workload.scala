package io.zerohop.spark.faults

import org.apache.spark.{HashPartitioner, SparkContext}
import org.apache.spark.rdd.RDD

/**
 * A shuffle whose result is known beforehand: every record is counted and summed by key, so that a
 * lost, doubled or changed record shows.
 */
object Workload {
  val Maps = 8
  val Reducers = 8
  val RecordsPerMap = 6000
  val Keys = 997

  /** Records, sum of ids and of payload bytes, by key. */
  type Answer = Map[Int, (Long, Long, Long)]

  lazy val expected: Answer =
    (0 until Maps * RecordsPerMap)
      .groupBy(_ % Keys)
      .map { case (key, ids) =>
        key -> ((ids.size.toLong, ids.map(_.toLong).sum, ids.map(id => check(payload(id))).sum))
      }

  /** @param onWrite called by the map task `map` before its record number `record` */
  def shuffled(sc: SparkContext)(onWrite: (Int, Int) => Unit): RDD[(Int, (Int, String))] =
    sc.parallelize(0 until Maps, Maps)
      .flatMap { map =>
        Iterator.range(0, RecordsPerMap).map { record =>
          onWrite(map, record)
          val id = map * RecordsPerMap + record
          (id % Keys, (id, payload(id)))
        }
      }
      .partitionBy(new HashPartitioner(Reducers))

  /** @param onRead called by the reduce task of a partition before its record number `record` */
  def answer(shuffled: RDD[(Int, (Int, String))])(onRead: (Int, Int) => Unit): Answer =
    shuffled
      .mapPartitionsWithIndex { (partition, records) =>
        records.zipWithIndex.map { case ((key, (id, text)), record) =>
          onRead(partition, record)
          (key, (1L, id.toLong, check(text)))
        }.toSeq
          .groupBy(_._1)
          .map { case (key, rows) =>
            key -> rows.map(_._2).reduce((a, b) => (a._1 + b._1, a._2 + b._2, a._3 + b._3))
          }
          .iterator
      }
      .collect()
      .groupBy(_._1)
      .map { case (key, found) =>
        if (found.length > 1) throw new IllegalStateException("a key twice")
        key -> found.head._2
      }

  def payload(id: Int): String = s"$Marker-$id-" + ("abcdefghij" * (id % 17))

  /** Starts every payload, so that it is found in a segment. */
  val Marker = "zerohop-payload"

  private def check(text: String): Long = text.foldLeft(7L)((sum, c) => sum * 31 + c)
}
