package io.zerohop.spark.faults

import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.duration._
import scala.util.Try

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, ExecutorMemory, RunBy}
import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.funsuite.AnyFunSuite

/** A context that stops under its tasks, as it does in a notebook, and the next one in its JVM. */
@RunBy.Faults
class StoppedContextSuite extends AnyFunSuite {
  import StoppedContextSuite._

  test("stop under a map task that writes") {
    stopUnder(context => Workload.answer(Workload.shuffled(context)(pauseAt))((_, _) => ()))
  }

  test("stop under a reduce task that reads") {
    stopUnder(context => Workload.answer(Workload.shuffled(context)((_, _) => ()))(pauseAt))
  }

  private def stopUnder(job: SparkContext => Unit): Unit = {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no memory of its own")
    val before = segments
    val moment = new Moment
    now = moment
    val first = newContext()
    val running = new Thread(() => { Try(job(first)); () }, "job-of-a-test")
    running.start()
    try {
      assert(moment.reached.await(60, TimeUnit.SECONDS), "no task came to its pause")
      Bounded("stop", 60.seconds)(first.stop())
      assert(segments > before, "the task still needs its memory")
      val second = newContext()
      try
        assert(
          Workload.answer(Workload.shuffled(second)((_, _) => ()))((_, _) => ()) ===
            Workload.expected)
      finally second.stop()
      assert(segments > before)
    } finally {
      moment.over.countDown()
      first.stop()
      running.join(60000)
    }
    Bounded.until(s"memory freed, of $segments segments with $before before", 60.seconds) {
      segments <= before
    }
  }

  private def newContext(): SparkContext =
    new SparkContext(
      new SparkConf()
        .setMaster("local[2]")
        .setAppName("stopped context")
        .set("spark.zerohop.pool.size", "256m")
        .set("spark.zerohop.segment.size", "16m"))

  private def segments: Int = ExecutorMemory.memfds(ProcessHandle.current.pid).size
}

object StoppedContextSuite {

  /** When a task pauses, and when it may go on. */
  private final class Moment {
    val reached = new CountDownLatch(1)
    val over = new CountDownLatch(1)
  }

  @volatile private var now = new Moment

  /** Tasks of local mode run in the test's own JVM. One of them pauses, in the middle. */
  private def pauseAt(task: Int, record: Int): Unit =
    if (task == 1 && record == 100) {
      now.reached.countDown()
      now.over.await(120, TimeUnit.SECONDS)
      ()
    }
}
