package io.zerohop.spark.gpu

import java.util.concurrent.LinkedBlockingQueue

import scala.io.Source

import io.zerohop.cluster.SparkApplication
import io.zerohop.spark.support.Cluster
import org.apache.spark.SparkConf

/**
 * The driver program of the tests on GPUs. Each question is a line with the name of a scenario,
 * each answer its [[Facts]]; ends when its input does, in the middle of a scenario too.
 */
object GpuTestApp {
  /** What it says once its executors take tasks. */
  val Ready = "ready"

  private val out = System.out

  /** @param args folder for what a hung wait leaves behind, and the number of executors */
  def main(args: Array[String]): Unit = {
    System.setProperty("zerohop.test.target", args(0))
    val conf = new SparkConf
    val cluster = new Cluster(args(1).toInt, conf.getAll.toMap, Some(conf.get("spark.master")))
    val scenarios = new FaultScenarios(cluster).all ++ new QueryScenarios(cluster).all
    val questions = new LinkedBlockingQueue[String]
    val reader = new Thread(() => readTo(questions), "questions")
    reader.setDaemon(true)
    reader.start()
    say(Ready)
    while (true) {
      val question = questions.take()
      say(Facts.write(answer(scenarios, question)))
    }
  }

  private def readTo(questions: LinkedBlockingQueue[String]): Unit = {
    Source.stdin.getLines().foreach(questions.put)
    System.exit(0)
  }

  private def answer(
      scenarios: Map[String, () => Map[String, Any]],
      name: String): Map[String, Any] =
    try scenarios(name)()
    catch {
      case e: Throwable =>
        e.printStackTrace()
        Map(Facts.Error -> s"$name: $e")
    }

  private def say(text: String): Unit = {
    out.println(SparkApplication.ANSWER + text)
    out.flush()
  }
}
