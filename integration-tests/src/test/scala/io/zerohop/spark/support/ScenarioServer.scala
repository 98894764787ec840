package io.zerohop.spark.support

import java.util.concurrent.LinkedBlockingQueue

import scala.io.Source

import io.zerohop.cluster.SparkApplication

/**
 * The driver's side of a [[SparkApplication]] that is asked for scenarios. Each question is a line,
 * each answer its [[Facts]]; ends the JVM when its input ends, in the middle of a scenario too.
 */
object ScenarioServer {

  /** What it says once it takes questions. */
  val Ready = "ready"

  private val out = System.out

  /** Does not return. */
  def serve(scenario: String => Map[String, Any]): Unit = {
    val questions = new LinkedBlockingQueue[String]
    val reader = new Thread(() => readTo(questions), "questions")
    reader.setDaemon(true)
    reader.start()
    say(Ready)
    while (true) {
      val question = questions.take()
      say(Facts.write(answer(scenario, question)))
    }
  }

  private def readTo(questions: LinkedBlockingQueue[String]): Unit = {
    Source.stdin.getLines().foreach(questions.put)
    System.exit(0)
  }

  private def answer(scenario: String => Map[String, Any], question: String): Map[String, Any] =
    try scenario(question)
    catch {
      case e: Throwable =>
        e.printStackTrace()
        Map(Facts.Error -> s"$question: $e")
    }

  private def say(text: String): Unit = {
    out.println(SparkApplication.ANSWER + text)
    out.flush()
  }
}
