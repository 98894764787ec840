package io.zerohop.spark.support

import java.util.concurrent.{Executors, TimeoutException}

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration._

/** Waits that end: when the limit passes all stacks are written down and the test fails. */
object Bounded {
  private val threads = ExecutionContext.fromExecutorService(
    Executors.newCachedThreadPool { work =>
      val thread = new Thread(work, "bounded")
      thread.setDaemon(true)
      thread
    })

  /** Runs `body` in a thread of its own and returns what it returns. */
  def apply[T](what: String, limit: FiniteDuration)(body: => T): T =
    try Await.result(Future(body)(threads), limit)
    catch { case _: TimeoutException => giveUp(what, limit) }

  /** Begins `body` in a thread of its own; what is returned waits two minutes for its end. */
  def async[T](body: => T): () => T = {
    val running = Future(body)(threads)
    () => apply("the end of what was begun", 2.minutes)(Await.result(running, Duration.Inf))
  }

  /** Asks again and again until `condition` holds. */
  def until(what: => String, limit: FiniteDuration)(condition: => Boolean): Unit = {
    val end = limit.fromNow
    while (!condition) {
      if (end.isOverdue()) giveUp(what, limit)
      Thread.sleep(50)
    }
  }

  private def giveUp(what: String, limit: FiniteDuration): Nothing =
    throw new Overdue(s"$what: not within $limit; stacks in ${Watchdog.dumpStacks(what)}")
}

/** A wait that passed its limit: a hang, as far as a test can tell. */
final class Overdue(message: String) extends AssertionError(message)
