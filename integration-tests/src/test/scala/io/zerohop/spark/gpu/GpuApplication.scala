package io.zerohop.spark.gpu

import java.nio.file.Files

import io.zerohop.cluster.SparkApplication
import io.zerohop.spark.support.ScenarioApplication

/** Submits [[GpuTestApp]] to the [[GpuHost]]. */
object GpuApplication {

  /** Submits one and returns when its executors take tasks. */
  def start(
      name: String,
      settings: Map[String, String],
      executors: Int = GpuHost.Executors): ScenarioApplication =
    submit(name, settings, executors).ready()

  /** Submits one and returns at once. */
  def submit(
      name: String,
      settings: Map[String, String],
      executors: Int = GpuHost.Executors): ScenarioApplication = {
    val folder = Files.createTempDirectory(GpuHost.logs, s"$name-")
    val home = GpuHost.installation.sparkHome.linkedAt(folder.resolve("home"))
    val log = folder.resolve("driver.err")
    val program = GpuTestApp.getClass.getName.stripSuffix("$")
    val submission = GpuHost.submission(program, settings, executors)
    new ScenarioApplication(SparkApplication.start(name, home, submission, log), log)
  }
}
