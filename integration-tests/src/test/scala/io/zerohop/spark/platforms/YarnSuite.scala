package io.zerohop.spark.platforms

import java.io.{BufferedReader, Writer}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.{Map => JavaMap}

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.zerohop.cluster.{Installation, SparkApplication}
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, RunBy}
import io.zerohop.spark.versions.SparkHomes
import io.zerohop.workload.{ClusterShape, Contender, Question, ResultFile, Testbed, WorkloadApp}
import org.scalatest.{BeforeAndAfterAll, Canceled, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/** The demo's queries on YARN, by examples/yarn: every row is that of sort shuffle on standalone. */
@RunBy.Yarn
class YarnSuite extends AnyFunSuite with BeforeAndAfterAll {
  private val Scale = 0.02
  private val Partitions = 8
  private val Queries = Seq("q5", "q9", "q21", "repartition", "skewed_join")

  private val target = Paths.get(sys.props("zerohop.test.target")).toAbsolutePath.normalize
  private val jars = target.resolve("yarn")
  private val installation = Installation.in(Distribution.repository)
  private lazy val folder =
    Files.createTempDirectory(Files.createDirectories(target.resolve("platforms")), "yarn-")

  override protected def withFixture(test: NoArgTest): Outcome =
    if (!ManagerUnderTest.isZerohop) Canceled("this is about Zerohop's paths")
    else if (!Files.isDirectory(jars)) Canceled("YARN's jars are laid out by mvn -Pyarn")
    else super.withFixture(test)

  test("every row of every query is sort shuffle's, read in place") {
    val yardstick = answersOfSortShuffle()
    val yarn = Distribution
      .process(miniYarn, Files.createDirectories(folder.resolve("yarn")), "yarn", Map.empty)
      .start()
    try {
      Bounded.until(s"YARN; see $folder/yarn", 90.seconds) {
        Files.readString(folder.resolve("yarn/yarn.out")).contains("ready") || !yarn.isAlive
      }
      assert(yarn.isAlive, s"see $folder/yarn")
      val application = submit(yardstick.data)
      try compare(yardstick, application)
      finally Distribution.end(application)
    } finally Distribution.end(yarn)
  }

  private def answersOfSortShuffle(): Testbed = {
    val local = Files.createDirectories(folder.resolve("local"))
    val shape = new ClusterShape(
      1, 2, 1024, local, ClusterShape.allShuffled(Partitions, JavaMap.of[String, String]()))
    val testbed = new Testbed(installation, shape, folder)
    try {
      testbed.generate(Scale)
      testbed.start(0, Contender.SORT)
      testbed.awaitReady()
      for (query <- Queries) {
        val outcome = testbed.run(0, query)
        assert(outcome.succeeded, outcome)
      }
      testbed
    } finally testbed.close()
  }

  private def miniYarn: Seq[String] = {
    val spark = SparkHomes.of("4.2.0").jars.filter { jar =>
      jar.getFileName.toString.matches("(hadoop-client|log4j|slf4j|jcl-over|jakarta|javax).*")
    }
    val all = Using.resource(Files.list(jars))(_.iterator.asScala.toVector) ++ spark
    Seq(Paths.get(sys.props("java.home"), "bin", "java").toString, "-Xmx512m", "-cp",
      all.mkString(":"),
      Distribution.repository.resolve(
        "integration-tests/src/test/yarn/MiniYarn.java").toString, s"$folder/yarn")
  }

  private def submit(tables: Path): Process = {
    val spark = SparkHomes.of("4.2.0")
    val home = Distribution.of(spark, folder.resolve("spark"))
    val sparkYarn = Using.resource(Files.list(jars)) {
      _.iterator.asScala.find(_.getFileName.toString.startsWith("spark-yarn_")).get
    }
    val settings = Map(
      // Spark's YARN support is a jar of a distribution, which Maven's artifacts lack.
      "spark.yarn.jars" -> s"local:${spark.path}/jars/*,local:$sparkYarn",
      "spark.yarn.stagingDir" -> folder.resolve("staging").toUri.toString,
      "spark.executor.instances" -> "2",
      "spark.executor.memory" -> "768m",
      "spark.scheduler.minRegisteredResourcesRatio" -> "1.0",
      "spark.scheduler.maxRegisteredResourcesWaitingTime" -> "90s",
      "spark.sql.shuffle.partitions" -> Partitions.toString,
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      "spark.sql.files.maxPartitionBytes" -> "2m",
      "spark.ui.enabled" -> "false")
    val command = Seq(Examples.folder.resolve("yarn/submit.sh").toString) ++
      settings.toSeq.sorted.flatMap { case (key, value) => Seq("--conf", s"$key=$value") } ++
      Seq("--driver-memory", "768m",
        "--jars", installation.applicationJars.asScala.mkString(","),
        "--class", classOf[WorkloadApp].getName,
        installation.applicationJar.toString, "TPCH", tables.toString)
    val builder = Distribution.process(command, folder, "driver",
      Map(
        "SPARK_HOME" -> home.toString,
        "SPARK_SCALA_VERSION" -> "2.13",
        "SPARK_LOCAL_IP" -> "127.0.0.1",
        "SPARK_DIST_CLASSPATH" -> sparkYarn.toString,
        "HADOOP_CONF_DIR" -> s"$folder/yarn/conf",
        "ZEROHOP_JAR" -> SparkHomes.zerohopJar.toString))
    builder.redirectOutput(ProcessBuilder.Redirect.PIPE).start()
  }

  private def compare(yardstick: Testbed, application: Process): Unit = {
    val answers = application.inputReader(UTF_8)
    val questions = application.outputWriter(UTF_8)
    assert(answer(answers) === WorkloadApp.READY, s"see $folder/driver.err")
    val seen = Queries.map { query =>
      val result = folder.resolve(s"yarn-$query.txt")
      val outcome = ask(questions, answers, new Question(query, result.toString))
      assert(outcome.get("error").isNull, outcome)
      val differences = ResultFile.differences("sort", yardstick.result(0, query), "YARN", result)
      assert(differences.isEmpty, s"$query: ${differences.asScala.take(5).mkString("\n")}")
      outcome
    }
    assert(seen.map(_.get("peerBytes").asLong).sum > 0, seen)
    assert(seen.map(_.get("stagedBytes").asLong).sum === 0, seen)
  }

  private val json = new ObjectMapper

  private def ask(questions: Writer, answers: BufferedReader, question: Question): JsonNode = {
    questions.write(json.writeValueAsString(question) + "\n")
    questions.flush()
    json.readTree(answer(answers))
  }

  private def answer(answers: BufferedReader): String =
    Bounded(s"an answer; see $folder", 120.seconds) {
      Iterator
        .continually(answers.readLine())
        .takeWhile(_ != null)
        .find(_.startsWith(SparkApplication.ANSWER))
        .map(_.stripPrefix(SparkApplication.ANSWER))
        .getOrElse(fail(s"the application ended; see $folder/driver.err"))
    }
}
