package io.zerohop.spark.gpu

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import io.zerohop.spark.support.Cluster
import org.apache.spark.sql.DataFrame

/**
 * What queries may ask of a shuffle, by name: each with adaptive execution and without, compared
 * with the CPU's rows.
 */
final class QueryScenarios(cluster: Cluster) {
  private val spark = cluster.spark

  val all: Map[String, () => Map[String, Any]] =
    Questions.all.map { case (name, question) => name -> (() => facts(name, question)) }

  private def facts(name: String, question: Question): Map[String, Any] = {
    spark.sql(Questions.Table)
    val (expected, _) = withSettings(Map(FaultyQuery.OnGpu -> "false"))(rows(question))
    val ((adapted, static), seen) = cluster.counted(name) {
      (answer(question, adaptive = true), answer(question, adaptive = false))
    }
    Map(
      "rows" -> expected.size,
      "equal" -> (adapted._1 == expected),
      "static_equal" -> (static._1 == expected),
      "direct_bytes" -> (seen.bytes("local") + seen.bytes("peer")),
      "digest" -> QueryScenarios.digest(expected),
      "async_commits" -> cluster.gauges("commits.async").values.sum) ++
      seen.facts ++ adapted._2 ++ static._2.map { case (key, value) => s"static_$key" -> value }
  }

  private def answer(question: Question, adaptive: Boolean): (Seq[String], Map[String, Any]) = {
    val settings = question.settings + ("spark.sql.adaptive.enabled" -> adaptive.toString)
    withSettings(settings) {
      val (answer, frame) = rows(question)
      (answer, Exchanges.facts(frame))
    }
  }

  private def rows(question: Question): (Seq[String], DataFrame) = {
    question.before.foreach(spark.sql)
    try {
      val frame = spark.sql(question.query)
      (QueryScenarios.sorted(frame), frame)
    } finally question.after.foreach(spark.sql)
  }

  private def withSettings[T](settings: Map[String, String])(body: => T): T = {
    val before = settings.keys.map(key => key -> spark.conf.getOption(key)).toMap
    settings.foreach { case (key, value) => spark.conf.set(key, value) }
    try body
    finally before.foreach {
        case (key, Some(value)) => spark.conf.set(key, value)
        case (key, None) => spark.conf.unset(key)
      }
  }
}

object QueryScenarios {

  /** The rows of a question in an application that has [[Questions.Table]]. */
  def sorted(frame: DataFrame): Seq[String] = frame.collect().map(_.toString).sorted.toSeq

  /** Tells rows apart where they are not at hand themselves. */
  def digest(rows: Seq[String]): String = {
    val hash = MessageDigest.getInstance("SHA-256").digest(rows.mkString("\n").getBytes(UTF_8))
    hash.map(byte => f"$byte%02x").mkString
  }
}
