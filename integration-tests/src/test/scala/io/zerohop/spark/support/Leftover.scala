package io.zerohop.spark.support

import scala.concurrent.duration._

/** Something that a fault left behind: memory, a lease, a descriptor, a thread, a socket. */
final class Leftover(message: String) extends AssertionError(message)

object Leftover {
  private val Limit = 60.seconds

  /** Waits until all is gone; what is still there when the limit passes stays for good. */
  def unless(what: => String)(gone: => Boolean): Unit =
    try Bounded.until(what, Limit)(gone)
    catch { case e: Overdue => throw new Leftover(e.getMessage) }
}
