package io.zerohop.spark.nodes

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.zerohop.SparkInternals

/** What a process has of all that must not grow with the number of shuffles, by name. */
object Footprint {
  val Resident = "rss.bytes"
  val Heap = "heap.bytes"
  val Descriptors = "descriptors"
  val Threads = "threads"

  /** Of Zerohop's metrics. */
  val Gauges: Seq[String] =
    Seq(
      "pool.used.bytes",
      "pool.reserved.bytes",
      "pool.segments",
      "receive.buffers",
      "leases.open",
      "peers")

  /** All that is told. */
  val Names: Seq[String] = Seq(Resident, Heap, Descriptors, Threads) ++ Gauges

  /** Of the calling process; its heap as it is without garbage. */
  def here(): Map[String, Long] = {
    System.gc()
    Map(
      Resident -> resident,
      Heap -> ManagementFactory.getMemoryMXBean.getHeapMemoryUsage.getUsed,
      Descriptors -> entries(Paths.get("/proc/self/fd")),
      Threads -> entries(Paths.get("/proc/self/task"))) ++
      Gauges.flatMap(name => SparkInternals.gauge("zerohop", name).map(name -> _))
  }

  private def resident: Long =
    Files.readAllLines(Paths.get("/proc/self/status")).asScala
      .collectFirst {
        case line if line.startsWith("VmRSS:") => line.filter(_.isDigit).toLong << 10
      }
      .get

  private def entries(folder: Path): Long =
    Using.resource(Files.list(folder))(_.count)
}
