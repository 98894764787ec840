package io.zerohop.spark.gpu

import org.apache.spark.zerohop.SparkInternals

/**
 * What an executor holds at a moment, as text.
 *
 * @param poolBytes of shuffle blocks in memory, of the host and the GPU together
 * @param leases on own and on peers' memory
 * @param rmmBytes that RAPIDS' queries have allocated on the GPU; 0 where RAPIDS is not
 */
final case class Moment(poolBytes: Long, leases: Long, rmmBytes: Long) {
  override def toString: String = s"$poolBytes $leases $rmmBytes"
}

object Moment {

  /** Of the executor that runs the calling task. */
  def now(): Moment = Moment(gauge("pool.used.bytes"), gauge("leases.open"), rmm())

  def parse(text: String): Moment = text.trim.split(' ').map(_.toLong) match {
    case Array(pool, leases, rmm) => Moment(pool, leases, rmm)
  }

  private def gauge(name: String): Long = SparkInternals.gauge("zerohop", name).getOrElse(0L)

  private def rmm(): Long =
    try Class.forName("ai.rapids.cudf.Rmm").getMethod("getTotalBytesAllocated").invoke(null) match {
        case bytes: java.lang.Long => bytes
        case other => throw new IllegalStateException(s"RMM has allocated $other")
      }
    catch { case _: ClassNotFoundException => 0L }
}
