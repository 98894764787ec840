package io.zerohop.spark.gpu

import io.zerohop.spark.support.{Facts, ScenarioApplication}
import org.scalatest.{BeforeAndAfterAll, Canceled, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/** Tests that need a [[GpuHost]]; most share one application, which is started at the first. */
abstract class GpuSuite extends AnyFunSuite with BeforeAndAfterAll {
  private var running: Option[ScenarioApplication] = None

  /** Beside what a user would set. */
  protected def settings: Map[String, String] = Map.empty

  /** How many executors there are, at most. */
  protected def executors: Int = GpuHost.Executors

  /** Why this cannot run here; none if it can. */
  protected def missing: Option[String] = GpuHost.missing

  override protected def withFixture(test: NoArgTest): Outcome =
    missing match {
      case Some(reason) => Canceled(reason)
      case None => super.withFixture(test)
    }

  override protected def afterAll(): Unit =
    try stop()
    finally super.afterAll()

  /** Asks the shared application. After an error another one is asked, which has nothing of it. */
  protected def ask(scenario: String): Facts = {
    if (running.isEmpty) running = Some(GpuApplication.start(suiteName, settings, executors))
    try {
      val facts = running.get.ask(scenario)
      info(facts.toString)
      facts
    } catch {
      case e: Throwable =>
        stop()
        throw e
    }
  }

  /** What the shared application's driver has logged. */
  protected def logged: String = running.get.logged

  protected def stop(): Unit = {
    running.foreach(_.close())
    running = None
  }

  /** Both with adaptive execution and without. */
  protected def assertEqual(facts: Facts): Unit = {
    assert(facts.number("rows") > 0)
    assert(facts.flag("equal"), facts)
    assert(facts.flag("static_equal"), facts)
  }

  /** A smoke run has no GPU, so nothing stays there. */
  protected def assertOnGpu(facts: Facts): Unit = if (!GpuHost.isSmoke) {
    assert(facts.number("gpu_exchanges") > 0, facts)
    assert(facts.number("serialised_exchanges") === 0, facts)
  }

  protected def needsRapids(): Unit =
    if (GpuHost.isSmoke) cancel("a smoke run has no RAPIDS")
}
