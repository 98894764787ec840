package io.zerohop.spark.gpu

import io.zerohop.spark.support.{Cluster, PathBytes}
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
    val (adapted, seen) = cluster.counted(name)(answer(question, adaptive = true))
    val (static, seenStatic) = cluster.counted(s"$name, static")(answer(question, adaptive = false))
    Map(
      "rows" -> expected.size,
      "equal" -> (adapted._1 == expected),
      "static_equal" -> (static._1 == expected),
      "direct_bytes" -> direct(seen, seenStatic),
      "async_commits" -> cluster.gauges("commits.async").values.sum,
      "staged_bytes" -> (seen.bytes("staged") + seenStatic.bytes("staged"))) ++
      adapted._2 ++ static._2.map { case (key, value) => s"static_$key" -> value }
  }

  private def direct(both: PathBytes*): Long =
    both.map(seen => seen.bytes("local") + seen.bytes("peer")).sum

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
      (frame.collect().map(_.toString).sorted.toSeq, frame)
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
