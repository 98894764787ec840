package io.zerohop.spark.gpu

import java.nio.file.{Files, Path}
import java.time.Duration

import io.zerohop.cluster.{SparkApplication, SparkHome}
import io.zerohop.spark.support.{Facts, ScenarioServer}

/** A submitted [[GpuTestApp]], which is asked for scenarios by name. */
final class GpuApplication private (application: SparkApplication, val log: Path)
    extends AutoCloseable {
  import GpuApplication._

  /** Runs a scenario and returns what it has seen. */
  def ask(scenario: String): Facts = Facts.read(application.ask(scenario, ScenarioLimit))

  /** Waits until it has ended by itself; throws if it did with an error, which says so. */
  def await(): Unit = application.await(StartLimit)

  /** What it has logged so far. */
  def logged: String = Files.readString(log)

  private def awaitReady(): Unit = assert(application.answer(StartLimit) == ScenarioServer.Ready)

  override def close(): Unit = application.close()
}

object GpuApplication {
  private val StartLimit = Duration.ofSeconds(100)
  private val ScenarioLimit = Duration.ofSeconds(150)

  /** Submits one and returns when its executors take tasks. */
  def start(name: String, settings: Map[String, String]): GpuApplication = {
    val application = submit(name, settings)
    try {
      application.awaitReady()
      application
    } catch {
      case e: Throwable =>
        application.close()
        throw e
    }
  }

  /** Submits one and returns at once. */
  def submit(name: String, settings: Map[String, String]): GpuApplication = {
    val folder = Files.createTempDirectory(GpuHost.logs, s"$name-")
    val home: SparkHome = GpuHost.installation.sparkHome.linkedAt(folder.resolve("home"))
    val log = folder.resolve("driver.err")
    val submission = GpuHost.submission(GpuTestApp.getClass.getName.stripSuffix("$"), settings)
    new GpuApplication(SparkApplication.start(name, home, submission, log), log)
  }
}
