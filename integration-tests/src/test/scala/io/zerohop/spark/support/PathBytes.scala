package io.zerohop.spark.support

import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}
import java.util.concurrent.atomic.{AtomicInteger, LongAdder}

import scala.jdk.CollectionConverters._

import io.zerohop.shuffle.block.BlockPath
import org.apache.spark.{FetchFailed, Success, TaskFailedReason}
import org.apache.spark.scheduler.{
  SparkListener, SparkListenerExecutorRemoved, SparkListenerTaskEnd, SparkListenerTaskStart
}

/**
 * What tasks report of their shuffle: bytes and blocks per path, and how often tasks failed; and
 * which executors were lost meanwhile.
 */
final class PathBytes extends SparkListener {
  private val counts = new ConcurrentHashMap[String, LongAdder]
  private val failures = new AtomicInteger
  private val mapTasks = new AtomicInteger
  private val speculative = new AtomicInteger
  private val fetches = new ConcurrentLinkedQueue[String]
  private val others = new ConcurrentLinkedQueue[String]
  private val removed = new ConcurrentLinkedQueue[String]

  override def onExecutorRemoved(gone: SparkListenerExecutorRemoved): Unit = {
    removed.add(s"${gone.executorId}: ${gone.reason}")
    ()
  }

  /** Counted at the start: a job may end before its driver hears how a copy on a lost executor did. */
  override def onTaskStart(start: SparkListenerTaskStart): Unit =
    if (start.taskInfo.speculative) speculative.incrementAndGet()

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = {
    if (end.reason != Success) failures.incrementAndGet()
    end.reason match {
      case failed: FetchFailed => fetches.add(failed.message)
      case failed: TaskFailedReason =>
        others.add(failed.toErrorString.linesIterator.take(1).mkString)
      case _ =>
    }
    if (end.taskType == "ShuffleMapTask" && end.reason == Success) mapTasks.incrementAndGet()
    for {
      info <- end.taskInfo.accumulables
      name <- info.name if name.startsWith("zerohop.")
      update <- info.update
    } counts.computeIfAbsent(name, _ => new LongAdder).add(update.toString.toLong)
  }

  /** `local`, `peer`, `ucx`, `sent` or `staged`. */
  def bytes(path: String): Long = Option(counts.get(s"zerohop.$path.bytes")).fold(0L)(_.sum)

  /** By every path, for [[Facts]]. */
  def facts: Map[String, Long] = PathBytes.Paths.map(path => s"${path}_bytes" -> bytes(path)).toMap

  def failedTasks: Int = failures.get

  /** What tasks said that could not fetch a block. */
  def fetchFailures: Seq[String] = fetches.asScala.toSeq

  /** What tasks failed with for other reasons, the first line of each. */
  def otherFailures: Seq[String] = others.asScala.toSeq

  /** Executors that the driver has removed, and why. */
  def removedExecutors: Seq[String] = removed.asScala.toSeq

  /** Speculative copies of tasks that were started. */
  def speculativeTasks: Int = speculative.get

  /** Map tasks that succeeded; more than there are partitions when some ran again. */
  def finishedMapTasks: Int = mapTasks.get
}

object PathBytes {

  /** Every way that has a counter. */
  val Paths: Seq[String] = BlockPath.values.toSeq.map(_.label)
}
