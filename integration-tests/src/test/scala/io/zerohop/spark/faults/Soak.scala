package io.zerohop.spark.faults

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable

/**
 * How often each fault is run, and the record of the runs in `target/soak.json`. A soak ends at a
 * time that is set beforehand, between two runs.
 */
object Soak {
  val runs: Int = sys.props.getOrElse("zerohop.test.faultRuns", "3").toInt

  /** For what is long: once where faults are run but a few times. */
  val longRuns: Int = if (runs <= 3) 1 else runs

  private val endMillis: Long =
    sys.props.get("zerohop.test.until").fold(Long.MaxValue)(_.toLong * 1000)

  private val records = mutable.LinkedHashMap.empty[String, SoakRecord]

  private val kills = new AtomicInteger

  /** Whether the time is up at which a soak ends. */
  def isOver: Boolean = System.currentTimeMillis >= endMillis

  /** Counts executors that the run in progress has killed. */
  def killed(executors: Int): Unit = {
    kills.addAndGet(executors)
    ()
  }

  /**
   * Repeats a fault; a run that throws ends the test.
   *
   * @param run returns how many tasks failed
   */
  def repeat(fault: String, times: Int = runs)(run: Int => Int): Unit = {
    val record = synchronized(records.getOrElseUpdate(fault, new SoakRecord(fault)))
    for (i <- 1 to times if !isOver) once(record)(run(i))
  }

  private def once(record: SoakRecord)(run: => Int): Unit = {
    kills.set(0)
    val start = System.nanoTime
    // Written before the run as well, so that one that is cut off in its middle is seen.
    write(record.begin())
    try record.pass(run)
    catch {
      case e: Throwable =>
        record.fail(e)
        throw e
    } finally write(record.end((System.nanoTime - start) / 1e9, kills.get))
  }

  private def write(changed: Unit): Unit = synchronized {
    Files.writeString(file, records.values.map(_.json).mkString("[\n", ",\n", "\n]\n"))
    ()
  }

  private def file: Path = Paths.get(sys.props("zerohop.test.target"), "soak.json")
}
