package org.apache.spark.zerohop

import java.time.Duration
import java.util.{Collections, IdentityHashMap}

import scala.annotation.tailrec
import scala.concurrent.Await
import scala.concurrent.duration._

import io.zerohop.shuffle.conf.Config
import io.zerohop.shuffle.transport.ControlChannel.ControlService
import io.zerohop.spark.compat.SparkLinks
import io.zerohop.spark.control.SparkControlChannel
import io.zerohop.spark.outputfiles.MapOutputFiles
import org.apache.spark.{
  MapOutputTracker, MapOutputTrackerMaster, SecurityManager, ShuffleDependency
}
import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.network.buffer.ManagedBuffer
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.ExecutorDecommissionInfo
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend
import org.apache.spark.shuffle.IndexShuffleBlockResolver
import org.apache.spark.storage.{BlockManagerId, ShuffleBlockId}

/** The only place where the tests reach into what Spark keeps to itself. */
object SparkInternals {

  /** A control channel of a process that is no executor. */
  def controlChannel(
      secret: Array[Byte],
      service: ControlService,
      limit: Duration): SparkControlChannel = {
    val conf = new SparkConf
    new SparkControlChannel(
      conf,
      Config.defaults.`with`("device.timeout", limit),
      new SecurityManager(conf),
      null,
      secret,
      service)
  }

  /**
   * Map statuses of a hundred executors, as the driver keeps them.
   *
   * @param topology what the location of each executor has besides its address
   * @return how many location objects they share, and their bytes as they are sent to executors
   */
  def mapStatuses(count: Int, topology: Option[String]): (Int, Long) = {
    val statuses = Array.tabulate(count) { map =>
      val executor = map % 100
      val at =
        BlockManagerId(executor.toString, s"host-$executor", 7077, topology.map(_ + executor))
      SparkLinks.newMapStatus(at, Array(100L, 0L, 10L), map.toLong, 0)
    }
    val locations = Collections.newSetFromMap(new IdentityHashMap[AnyRef, java.lang.Boolean])
    statuses.foreach(status => locations.add(status.location))
    val env = SparkEnv.get
    val (bytes, _) = MapOutputTracker.serializeOutputStatuses(
      statuses, env.broadcastManager, isLocal = true, Int.MaxValue, env.conf)
    (locations.size, bytes.length.toLong)
  }

  /** Ids of the executors that are registered now. */
  def executorIds(sc: SparkContext): Seq[String] = backend(sc).getExecutorIds()

  /** Ids of those whose block manager is registered, the driver's among them. */
  def blockManagerIds(sc: SparkContext): Set[String] =
    sc.env.blockManager.master.getMemoryStatus.keySet.map(_.executorId).toSet

  /** How many executors hold blocks, as the driver tells the process that asks. */
  def executorsSeen: Int =
    SparkEnv.get.blockManager.master.getMemoryStatus.keys.count(_.executorId != "driver")

  /** Makes driver and executors forget a shuffle, and waits until they have. */
  def removeShuffle(sc: SparkContext, shuffleId: Int): Unit =
    sc.cleaner.foreach(_.doCleanupShuffle(shuffleId, blocking = true))

  /** Whether Spark leaves the outputs of lost executors alone. */
  def isReliable(sc: SparkContext): Boolean = sc.shuffleDriverComponents.supportsReliableStorage()

  /** Runs the map stage of a shuffled RDD, without any reader, and returns the shuffle's id. */
  def runMapStage(sc: SparkContext, shuffled: RDD[_]): Int =
    Await.result(sc.submitMapStage(shuffleOf(shuffled)), 2.minutes).shuffleId

  /** The shuffle that is nearest to an RDD on its way back to the first of its parents. */
  @tailrec
  def shuffleOf(rdd: RDD[_]): ShuffleDependency[_, _, _] =
    rdd.dependencies.head match {
      case dependency: ShuffleDependency[_, _, _] => dependency
      case narrow => shuffleOf(narrow.rdd)
    }

  /** Makes this executor forget a shuffle, unknown to the driver. */
  def forgetShuffle(shuffleId: Int): Boolean =
    SparkEnv.get.shuffleManager.unregisterShuffle(shuffleId)

  /** Makes the driver forget a shuffle, unknown to the executors. */
  def forgetInDriver(shuffleId: Int): Unit = tracker.unregisterShuffle(shuffleId)

  /** Every shuffle that the driver still knows. */
  def shuffleIds(sc: SparkContext): Seq[Int] = tracker.shuffleStatuses.keys.toSeq

  /** Executors that hold the map outputs of a shuffle, one per map output that is there. */
  def mapOutputOwners(shuffleId: Int): Seq[String] =
    tracker.shuffleStatuses(shuffleId).withMapStatuses {
      _.toSeq.filter(_ != null).map(_.location.executorId)
    }

  /** The map outputs of a shuffle that an executor holds, by their map ids. */
  def mapOutputsOf(shuffleId: Int, executorId: String): Seq[Long] =
    tracker.shuffleStatuses(shuffleId).withMapStatuses {
      _.toSeq.filter(s => s != null && s.location.executorId == executorId).map(_.mapId)
    }

  /**
   * Asks an executor to hand over its blocks and leave. None takes its place until
   * [[requestExecutors]], since Spark 4 might send it blocks before it can take them.
   */
  def decommission(sc: SparkContext, executorId: String): Boolean =
    backend(sc).decommissionExecutor(
      executorId,
      ExecutorDecommissionInfo("asked by a test"),
      adjustTargetNumExecutors = true)

  /** Asks for so many executors in all. */
  def requestExecutors(sc: SparkContext, total: Int): Boolean =
    sc.requestTotalExecutors(total, 0, Map.empty)

  /** Folders in which this process keeps its files. */
  def localDirs: Seq[String] =
    SparkEnv.get.blockManager.diskBlockManager.localDirs.map(_.getPath).toSeq

  /** Names of the files in them. */
  def localFiles: Seq[String] =
    SparkEnv.get.blockManager.diskBlockManager.getAllFiles().map(_.getName).toSeq

  /** Waits until listeners have seen every event so far. */
  def awaitListeners(sc: SparkContext): Unit = sc.listenerBus.waitUntilEmpty(30000)

  /** Files of map outputs in this process's local directories. */
  def mapOutputFiles: MapOutputFiles = new MapOutputFiles()

  /** A block as it is in such a file. */
  def storedBlock(id: ShuffleBlockId): ManagedBuffer = resolver.getBlockData(id)

  /** What a block was before it was compressed and encrypted. */
  def plainBytes(id: ShuffleBlockId, stored: ManagedBuffer): Array[Byte] = {
    val in = SparkEnv.get.serializerManager.wrapStream(id, stored.createInputStream())
    try in.readAllBytes()
    finally in.close()
  }

  private def resolver: IndexShuffleBlockResolver =
    SparkEnv.get.shuffleManager.shuffleBlockResolver.asInstanceOf[IndexShuffleBlockResolver]

  private def backend(sc: SparkContext): CoarseGrainedSchedulerBackend =
    sc.schedulerBackend.asInstanceOf[CoarseGrainedSchedulerBackend]

  private def tracker: MapOutputTrackerMaster =
    SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]

  /** Value of a gauge of a metrics source of this process. */
  def gauge(source: String, name: String): Option[Long] =
    SparkEnv.get.metricsSystem
      .getSourcesByName(source)
      .map(_.metricRegistry.getGauges.get(name))
      .find(_ != null)
      .map(_.getValue.asInstanceOf[Long])
}
