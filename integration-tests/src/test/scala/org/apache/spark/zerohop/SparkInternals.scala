package org.apache.spark.zerohop

import scala.concurrent.Await
import scala.concurrent.duration._

import org.apache.spark.{MapOutputTrackerMaster, ShuffleDependency, SparkContext, SparkEnv}
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.ExecutorDecommissionInfo
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend

/** The only place where the tests reach into what Spark keeps to itself. */
object SparkInternals {

  /** Ids of the executors that are registered now. */
  def executorIds(sc: SparkContext): Seq[String] = backend(sc).getExecutorIds()

  /** Makes driver and executors forget a shuffle, and waits until they have. */
  def removeShuffle(sc: SparkContext, shuffleId: Int): Unit =
    sc.cleaner.foreach(_.doCleanupShuffle(shuffleId, blocking = true))

  /** Runs the map stage of a shuffled RDD, without any reader, and returns the shuffle's id. */
  def runMapStage(sc: SparkContext, shuffled: RDD[_]): Int =
    shuffled.dependencies.head match {
      case dependency: ShuffleDependency[_, _, _] =>
        Await.result(sc.submitMapStage(dependency), 2.minutes).shuffleId
      case other => throw new IllegalArgumentException(s"$other is no shuffle")
    }

  /** Every shuffle that the driver still knows. */
  def shuffleIds(sc: SparkContext): Seq[Int] = tracker.shuffleStatuses.keys.toSeq

  /** Executors that hold the map outputs of a shuffle, one per map output that is there. */
  def mapOutputOwners(shuffleId: Int): Seq[String] =
    tracker.shuffleStatuses(shuffleId).withMapStatuses {
      _.toSeq.filter(_ != null).map(_.location.executorId)
    }

  /**
   * Asks an executor to hand over its blocks and leave. None takes its place until
   * [[requestExecutors]]: Spark 4 offers an executor for migration before that has its shuffle
   * manager, and an executor that was sent a block that early can serve none for good.
   */
  def decommission(sc: SparkContext, executorId: String): Boolean =
    backend(sc).decommissionExecutor(
      executorId,
      ExecutorDecommissionInfo("asked by a test"),
      adjustTargetNumExecutors = true)

  /** Asks for so many executors in all. */
  def requestExecutors(sc: SparkContext, total: Int): Boolean =
    sc.requestTotalExecutors(total, 0, Map.empty)

  /** Waits until listeners have seen every event so far. */
  def awaitListeners(sc: SparkContext): Unit = sc.listenerBus.waitUntilEmpty(30000)

  private def backend(sc: SparkContext): CoarseGrainedSchedulerBackend =
    sc.schedulerBackend.asInstanceOf[CoarseGrainedSchedulerBackend]

  private def tracker: MapOutputTrackerMaster =
    SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]

  /** Value of a gauge of a metrics source of this process. */
  def gauge(source: String, name: String): Option[Long] =
    SparkEnv.get.metricsSystem
      .getSourcesByName(source)
      .flatMap(s => Option(s.metricRegistry.getGauges.get(name)))
      .headOption
      .map(_.getValue.asInstanceOf[Long])
}
