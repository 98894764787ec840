package io.zerohop.spark.faults

import java.nio.file.{Files, Path, Paths}

import scala.collection.mutable

/** How often each fault is run, and the record of the runs in `target/soak.json`. */
object Soak {
  val runs: Int = sys.props.getOrElse("zerohop.test.faultRuns", "3").toInt

  private final case class Run(seconds: Double, failedTasks: Int)

  private val log = mutable.LinkedHashMap.empty[String, mutable.Buffer[Run]]

  /** For what is long: once where faults are run but a few times. */
  val longRuns: Int = if (runs <= 3) 1 else runs

  /** Repeats a fault; a run that throws ends the test. */
  def repeat(fault: String, times: Int = runs)(run: Int => Int): Unit =
    for (i <- 1 to times) {
      val start = System.nanoTime
      val failedTasks = run(i)
      record(fault, Run((System.nanoTime - start) / 1e9, failedTasks))
    }

  private def record(fault: String, run: Run): Unit = synchronized {
    log.getOrElseUpdate(fault, mutable.Buffer.empty) += run
    val entries = log.map { case (name, done) =>
      val seconds = done.map(_.seconds)
      f"""  {"fault": "$name", "runs": ${done.size}, "passed": ${done.size}, """ +
        f""""failed_tasks": ${done.map(_.failedTasks).sum}, "seconds_min": ${seconds.min}%.2f, """ +
        f""""seconds_max": ${seconds.max}%.2f}"""
    }
    Files.writeString(file, entries.mkString("[\n", ",\n", "\n]\n"))
    ()
  }

  private def file: Path = Paths.get(sys.props("zerohop.test.target"), "soak.json")
}
