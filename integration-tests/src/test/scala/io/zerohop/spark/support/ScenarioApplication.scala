package io.zerohop.spark.support

import java.nio.file.{Files, Path}
import java.time.Duration

import io.zerohop.cluster.SparkApplication

/**
 * A submitted driver program that serves scenarios by [[ScenarioServer]]. Owns the application; for
 * one thread.
 *
 * @param log what its driver logs to
 */
final class ScenarioApplication(application: SparkApplication, val log: Path)
    extends AutoCloseable {
  import ScenarioApplication._

  /** Returns when its executors take tasks; closes it if they do not come within the limit. */
  def ready(limit: Duration = StartLimit): ScenarioApplication =
    try {
      assert(application.answer(limit) == ScenarioServer.Ready)
      this
    } catch {
      case e: Throwable =>
        close()
        throw e
    }

  /** Runs a scenario and returns what it has seen. */
  def ask(scenario: String): Facts = Facts.read(application.ask(scenario, ScenarioLimit))

  /** Waits until it has ended by itself; throws if it did with an error, which says so. */
  def await(): Unit = application.await(StartLimit)

  /** What it has logged so far. */
  def logged: String = Files.readString(log)

  override def close(): Unit = application.close()
}

object ScenarioApplication {
  private val StartLimit = Duration.ofSeconds(100)
  private val ScenarioLimit = Duration.ofSeconds(150)
}
