package io.zerohop.spark.faults

import java.util.UUID

import scala.collection.mutable

import io.zerohop.spark.support.{Leftover, Overdue}

/** What became of all runs of one fault in this JVM. */
final class SoakRecord(fault: String) {
  import SoakRecord._

  private val seconds = mutable.Buffer.empty[Double]
  private val failures = mutable.LinkedHashMap(Kinds.map(_ -> 0): _*)
  private var unfinished = 0
  private var passed = 0
  private var kills = 0
  private var failedTasks = 0

  def begin(): Unit = unfinished += 1

  def pass(tasksFailed: Int): Unit = {
    passed += 1
    failedTasks += tasksFailed
  }

  def fail(how: Throwable): Unit = failures(kind(how)) += 1

  def end(took: Double, executorsKilled: Int): Unit = {
    unfinished -= 1
    seconds += took
    kills += executorsKilled
  }

  /** One line. Runs of the same session are those of one JVM. */
  def json: String = {
    val took = seconds.map(each => f"$each%.2f")
    f"""  {"fault": "$fault", "session": "$Session", "runs": ${seconds.size}, "passed": $passed, """ +
      f""""kills": $kills, "unfinished": $unfinished, """ +
      failures.map { case (kind, count) => s""""$kind": $count, """ }.mkString +
      f""""failed_tasks": $failedTasks, "seconds_min": ${seconds.minOption.getOrElse(
          0.0)}%.2f, """ +
      f""""seconds_max": ${seconds.maxOption.getOrElse(0.0)}%.2f, """ +
      took.mkString("\"seconds\": [", ", ", "]}")
  }
}

object SoakRecord {

  /** What can be wrong with a run. */
  private val Kinds = Seq("wrong", "hangs", "leftovers", "errors")

  private val Session = UUID.randomUUID.toString.take(8)

  /** Also of what another process threw, which is known by its text. */
  private def kind(failure: Throwable): String = {
    val causes = Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).map(_.toString).mkString
    if (causes.contains(classOf[Leftover].getName)) "leftovers"
    else if (causes.contains(classOf[Overdue].getName) || causes.contains("gave no answer")) "hangs"
    else if (failure.isInstanceOf[org.scalatest.exceptions.TestFailedException]) "wrong"
    else "errors"
  }
}
