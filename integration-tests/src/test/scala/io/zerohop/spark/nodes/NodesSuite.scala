package io.zerohop.spark.nodes

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.Facts
import io.zerohop.spark.versions.SparkHomes
import org.scalatest.{BeforeAndAfterAll, Canceled, Failed, Outcome}
import org.scalatest.exceptions.TestCanceledException
import org.scalatest.funsuite.AnyFunSuite

/**
 * Tests on two nodes that share one application, which is started at the first. Where there cannot
 * be two nodes they fail in CI, and are cancelled with a notice elsewhere.
 */
abstract class NodesSuite extends AnyFunSuite with BeforeAndAfterAll {
  private val Patience = 30.seconds
  private var running: Option[NodesApplication] = None

  /** How bytes are to go between nodes. */
  protected def between: String = NodePaths.Between

  /** Beside what every application on two nodes has. */
  protected def settings: Map[String, String] = Map.empty

  override protected def withFixture(test: NoArgTest): Outcome =
    if (!ManagerUnderTest.isZerohop) Canceled("this is about Zerohop's paths")
    else NodesHost.missing match {
      case Some(reason) if SparkHomes.isCi => Failed(reason)
      case Some(reason) => Canceled(reason)
      case None => super.withFixture(test)
    }

  override protected def afterAll(): Unit =
    try stop()
    finally super.afterAll()

  /** Nothing of a test that failed is left to the next one. */
  protected def onNodes[T](body: NodesApplication => T): T = {
    if (running.isEmpty) running = Some(NodesApplication.start(suiteName, settings))
    try body(running.get)
    catch {
      case e: TestCanceledException => throw e
      case e: Throwable =>
        stop()
        throw e
    }
  }

  /**
   * The nodes are as before: nobody holds anything, and a transfer goes the expected ways, if not
   * at once then soon. A first contact that fails is tried again after a pause, and staged until
   * then.
   */
  protected def assertGoodAsNew(app: NodesApplication): Unit = {
    app.ask("settle")
    val patience = Patience.fromNow
    var facts = app.transfer()
    assertRight(facts)
    while (!NodePaths.areExpected(facts, between) && patience.hasTimeLeft()) {
      info(s"not yet as before: $facts")
      facts = app.transfer()
      assertRight(facts)
    }
    NodePaths.assertExpected(facts, between)
    app.ask("settle")
  }

  protected def assertRight(facts: Facts): Unit = assert(facts.text("outcome") === "right", facts)

  /** The answer is right, or the job has lost a block or an executor too often, and says so. */
  protected def assertRightOrLost(facts: Facts): Unit =
    if (facts.text("outcome") == "failed") {
      val message = facts.text("message")
      assert(NodesSuite.Losses.exists(message.contains), facts)
    } else assertRight(facts)

  /** How many tasks failed, if the job did not. */
  protected def failedTasks(facts: Facts): Int = {
    info(facts.toString)
    if (facts.text("outcome") == "failed") 0 else facts.number("failed_tasks").toInt
  }

  private def stop(): Unit = {
    running.foreach(_.close())
    running = None
  }
}

object NodesSuite {

  /** What the last attempt at a task of Spark's failed with whose job lost the link for too long. */
  private val Losses = Seq("FetchFailedException", "ExecutorLostFailure")
}
