package io.zerohop.spark.gpu

import java.nio.file.{Files, Path}
import java.time.{LocalDate, ZoneOffset}

import scala.collection.immutable.ListMap
import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.zerohop.spark.support.{Facts, PathBytes}
import org.scalatest.{Canceled, Failed, Outcome}

/**
 * What a suite on a [[UserCluster]] has seen, as JSON and as text: docs/cluster-suite.md has the
 * fields. Nodes have numbers in place of their names and addresses, unless the user wants names.
 *
 * @param showsHosts whether names stay
 */
final class ClusterReport(master: String, showsHosts: Boolean) {
  import ClusterReport._

  private val tests = mutable.ArrayBuffer.empty[Test]
  private var about: Option[Facts] = None

  /** The answer to `describe`, of which the report begins. */
  def describe(facts: Facts): Unit = about = Some(facts)

  /** Runs a test and keeps its outcome, with the bytes that its last answer counted. */
  def record(name: String, facts: => Option[Facts])(body: => Outcome): Outcome = {
    val start = System.nanoTime
    val outcome = body
    val (result, why) = outcome match {
      case Failed(e) => ("failed", e.toString)
      case Canceled(e) => ("canceled", Option(e.getMessage).getOrElse(""))
      case _ => ("passed", "")
    }
    val bytes = facts.fold(Map.empty[String, Long])(bytesOf(_).filter(_._2 > 0))
    tests += Test(name, result, why.take(MaxReason), (System.nanoTime - start) / 1000000, bytes)
    outcome
  }

  /** Writes `report.json` and `report.txt` into a folder that is there. */
  def write(folder: Path): Unit = {
    Files.writeString(folder.resolve("report.json"), plain(Facts.write(json)) + "\n")
    Files.writeString(folder.resolve("report.txt"), plain(text))
    println(s"$summary; send $folder/report.json")
  }

  private def json: Map[String, Any] = ListMap(
    "tool" -> "cluster-suite",
    "format" -> 1,
    "date" -> LocalDate.now(ZoneOffset.UTC).toString,
    "result" -> result,
    "zerohop" -> doctor.map(_.get("version").asText),
    "master" -> master.takeWhile(_ != ':'),
    "spark" -> about.map(_.text("spark")),
    "java" -> about.map(_.text("java")),
    "executors" -> executors.map(executor),
    "settings" -> about.map(_.value("settings")),
    "doctor" -> doctor.map(_.get("processes")),
    "tests" -> tests.map { test =>
      ListMap("name" -> test.name, "result" -> test.result, "why" -> test.why,
        "millis" -> test.millis, "bytes" -> test.bytes)
    })

  private def text: String = {
    val versions = about.fold("the cluster was not reached") { facts =>
      s"Zerohop ${doctor.get.get("version").asText}, Spark ${facts.text("spark")}, Java ${facts.text("java")}"
    }
    val where = executors.map { has =>
      def say(field: String) = has.get(field).asText
      val gpus = texts(has.get("gpus")).map(_.asText)
      s"executor ${say("id")} on ${say("host")}: cores ${say("cores")}, " +
        (if (gpus.isEmpty) "no GPU" else s"GPU ${say("task_gpus")} of ${gpus.mkString("; ")}")
    }
    val found = for {
      process <- doctor.toSeq.flatMap(_.get("processes").elements.asScala)
      finding <- process.get("findings").elements.asScala
      if Shown(finding.get("check").asText) || !Fine(finding.get("verdict").asText)
    } yield Seq("verdict", "check", "what").map(finding.get(_).asText).mkString("doctor ", " ", "")
    val lines = tests.map { test =>
      val bytes = test.bytes.toSeq.sorted.map { case (path, count) => s"$path $count" }
      f"${test.result}%-8s ${test.millis / 1000.0}%6.1f s  ${test.name}" +
        (if (bytes.isEmpty) "" else bytes.mkString(" (bytes: ", ", ", ")")) +
        (if (test.why.isEmpty) "" else s"\n  ${test.why}")
    }
    (Seq(versions, s"master $master") ++ where ++ found.distinct ++ lines :+ summary)
      .mkString("", "\n", "\n")
  }

  private def result: String = if (tests.exists(_.result == "failed")) "failed" else "passed"

  private def summary: String = {
    val counts =
      Seq("passed", "failed", "canceled").map(one => s"${tests.count(_.result == one)} $one")
    s"cluster suite: ${counts.mkString(", ")}"
  }

  private def executors: Seq[JsonNode] =
    about.toSeq.flatMap(_.value("executors").elements.asScala)

  private def executor(has: JsonNode): Map[String, Any] =
    ListMap("id" -> has.get("id"), "node" -> has.get("host")) ++
      Seq("cores", "gpus", "task_gpus").map(field => field -> has.get(field))

  private def doctor: Option[JsonNode] =
    about.map(facts => new ObjectMapper().readTree(facts.text("doctor")))

  /** The same with every name of a host, address and home folder gone. */
  private def plain(text: String): String =
    if (showsHosts) text
    else {
      val named = names.foldLeft(text) { case (now, (name, other)) =>
        now.replaceAll(
          s"(?<![A-Za-z0-9_.-])${java.util.regex.Pattern.quote(name)}(?![A-Za-z0-9_-])", other)
      }
      named.replaceAll(Address, "ADDRESS")
    }

  /** What stands for each name, the longest name first. */
  private def names: Seq[(String, String)] = {
    val hosts = executors.map(_.get("host").asText).distinct.sorted
    val ofNodes = executors.flatMap { executor =>
      val node = s"node-${hosts.indexOf(executor.get("host").asText) + 1}"
      (executor.get("host") +: texts(executor.get("names"))).map(_.asText -> node)
    }
    val ofDriver =
      about.toSeq.flatMap(facts => texts(facts.value("driver_names")).map(_.asText -> "driver"))
    val ofMaster = "(?<=//)[^:/,]+".r.findAllIn(master).map(_ -> "MASTER")
    (ofNodes ++ ofDriver ++ ofMaster).distinctBy(_._1)
      .map { case (name, other) => name -> (if (name.startsWith("/")) "~" else other) }
      .filter { case (name, _) => name.length > 2 && name != "localhost" }
      .sortBy { case (name, _) => -name.length }
  }
}

object ClusterReport {
  private val MaxReason = 1000
  private val Address = raw"(?<![\d.])\d{1,3}(\.\d{1,3}){3}(?![\d.])"

  /** Checks of the doctor that say what the machine is, and verdicts that ask for nothing. */
  private val Shown = Set("driver", "nvlink", "p2p", "adapters", "gpudirect", "libucx", "rapids")
  private val Fine = Set("ok", "skip")

  private final case class Test(
      name: String,
      result: String,
      why: String,
      millis: Long,
      bytes: Map[String, Long])

  /** By path; none of an answer that counted none. */
  def bytesOf(facts: Facts): Map[String, Long] =
    PathBytes.Paths.filter(path => facts.has(s"${path}_bytes"))
      .map(path => path -> facts.number(s"${path}_bytes")).toMap

  private def texts(list: JsonNode): Seq[JsonNode] = list.elements.asScala.toSeq
}
