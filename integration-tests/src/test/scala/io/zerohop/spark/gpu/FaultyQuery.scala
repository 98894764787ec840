package io.zerohop.spark.gpu

import io.zerohop.spark.faults.Workload
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.functions.{col, concat, count, lit, max, min, sum, udf}

/**
 * A query of one exchange whose map and reduce tasks call back for every row. RAPIDS leaves an
 * exchange to the CPU whose input comes from there, so between the call and the exchange is a
 * projection that it takes to the GPU.
 *
 * @param rows how many ids there are, from 0 on
 */
final class FaultyQuery(spark: SparkSession, val rows: Long = FaultyQuery.Rows) {
  import FaultyQuery._

  val rowsPerMap: Long = rows / Maps

  /** The right answer, by the CPU and without a fault. */
  lazy val expected: Seq[String] = {
    spark.conf.set(OnGpu, "false")
    try answer(frame())
    finally spark.conf.set(OnGpu, "true")
  }

  /**
   * @param maps how many map tasks share the ids, in order
   * @param onWrite called in the map task with each id
   * @param onRead called in the reduce task with each id
   */
  def frame(
      maps: Int = Maps,
      onWrite: Long => Unit = _ => (),
      onRead: Long => Unit = _ => ()): DataFrame =
    spark
      .range(0, rows, 1, maps)
      .select(calling(onWrite)(col("id")).as("id"))
      .select(col("id"), (col("id") % Keys).as("k"), concat(marker, col("id")).as("s"))
      .repartition(Reducers, col("k"))
      .select(calling(onRead)(col("id")).as("id"), col("k"), col("s"))
      .groupBy("k")
      .agg(count("*"), sum("id"), min("s"), max("s"))

  def answer(frame: DataFrame): Seq[String] = frame.collect().map(_.toString).sorted.toSeq
}

object FaultyQuery {

  /** RAPIDS' switch, which nobody reads in a smoke run. */
  val OnGpu = "spark.rapids.sql.enabled"

  val Rows = 1200000L
  val Maps = 8

  /** More than there are cores, so that some still want the blocks of an executor that is gone. */
  val Reducers = 24

  /** How many groups there are: the first ids have one each. */
  val Keys = 997

  private def marker = lit(s"${Workload.Marker}-")

  private def calling(callback: Long => Unit) =
    udf { (id: Long) => callback(id); id }.asNondeterministic()
}
