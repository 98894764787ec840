package io.zerohop.spark.gpu

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration._
import scala.util.{Failure, Success}

import io.zerohop.spark.faults.Fault
import io.zerohop.spark.support.{Bounded, Cluster}
import org.apache.spark.sql.DataFrame

/** Cancels a query by its job group, and looks what is left of it. */
final class Cancellation(cluster: Cluster, query: FaultyQuery) {

  /** @param lingering a query whose rows take their time once `fault` has happened */
  def facts(fault: Fault)(lingering: Fault => DataFrame): Map[String, Any] = {
    val before = allocated()
    val message = cancel(fault, lingering(fault))
    cluster.assertNothingHeld()
    var now = before
    Bounded.until(s"RMM's bytes back from $now to $before", 30.seconds) {
      now = allocated()
      now.forall { case (executor, bytes) => bytes <= before.getOrElse(executor, 0L) }
    }
    val frame = query.frame()
    val answer = cluster.run("the query after")(query.answer(frame))
    cluster.assertNothingHeld()
    val moment = fault.note.map(Moment.parse)
    Exchanges.facts(frame) ++ Map(
      "message" -> message,
      "equal_after" -> (answer == query.expected),
      "pool_then" -> moment.fold(0L)(_.poolBytes),
      "leases_then" -> moment.fold(0L)(_.leases),
      "rmm_then" -> moment.fold(0L)(_.rmmBytes))
  }

  /** Returns what the query failed with. */
  private def cancel(fault: Fault, lingering: DataFrame): String = {
    val group = s"group-${fault.hashCode}"
    val running = Future {
      cluster.sc.setJobGroup(group, "to be cancelled", interruptOnCancel = true)
      query.answer(lingering)
    }
    Bounded.until("a query in its middle", 60.seconds)(fault.note.nonEmpty)
    cluster.sc.cancelJobGroup(group)
    Await.ready(running, 60.seconds).value match {
      case Some(Failure(e)) => e.toString
      case Some(Success(_)) => throw new AssertionError("the query ended before it was cancelled")
      case None => throw new AssertionError("the cancelled query went on")
    }
  }

  /** Bytes that RAPIDS' queries hold in each executor's GPU memory. */
  private def allocated(): Map[String, Long] =
    cluster.onEach("allocated bytes")(() => Moment.now().rmmBytes)
}
