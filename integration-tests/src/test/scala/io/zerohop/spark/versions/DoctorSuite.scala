package io.zerohop.spark.versions

import java.io.File
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit
import java.util.jar.{Attributes, JarEntry, JarOutputStream}

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.zerohop.spark.Doctor
import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, JarCopy, Local, RunBy}
import org.scalatest.funsuite.AnyFunSuite

/** The doctor as users start it: the packaged jar alone, and as an application. */
@RunBy.Versions
class DoctorSuite extends AnyFunSuite with NeedsSparkHome {
  private val LimitSeconds = 120L
  private val ExecutorPath = "spark.executor.extraClassPath"

  private case class Ended(exit: Int, out: String, err: String) {
    lazy val json: JsonNode = new ObjectMapper().readTree(out)

    def findings: Seq[JsonNode] =
      json.get("processes").asScala.toSeq.flatMap(_.get("findings").asScala)

    def of(check: String): Seq[JsonNode] = findings.filter(_.get("check").asText == check)

    /** What a report says and how the process ended are the same. */
    def assertConsistent(): Unit = {
      val expected = Map("ok" -> 0, "skip" -> 0, "warn" -> 1, "fail" -> 2)
      assert(exit === expected(json.get("verdict").asText), out + err)
      findings.filter(it => Set("warn", "fail")(it.get("verdict").asText)).foreach { it =>
        assert(it.get("remedy").asText.nonEmpty, it)
        assert(it.get("mend") === it.get("remedy"), "as programs of 0.2.0 read it")
      }
    }
  }

  /** `java -jar`, with nothing on the class path and temporary files in a folder of its own. */
  private def alone(temporary: Path, arguments: String*): Ended =
    alone(temporary, Map.empty[String, String], arguments)

  private def alone(
      temporary: Path,
      environment: Map[String, String],
      arguments: Seq[String]): Ended = {
    val command = Seq(
      Paths.get(sys.props("java.home"), "bin", "java").toString,
      "-Xmx256m",
      s"-Djava.io.tmpdir=$temporary",
      "-XX:-UsePerfData",
      "-jar",
      SparkHomes.zerohopJar.toString) ++ arguments
    val out = Files.createTempFile("doctor", ".out")
    val err = Files.createTempFile("doctor", ".err")
    val builder = new ProcessBuilder(command.asJava)
      .redirectOutput(out.toFile)
      .redirectError(err.toFile)
    builder.environment.keySet.removeIf(key =>
      key.startsWith("SPARK_") || Set("CLASSPATH", "JDK_JAVA_OPTIONS")(key))
    builder.environment.put("UCX_LOG_FILE", "stderr") // As bin/doctor of a release.
    builder.environment.putAll(environment.asJava)
    val process = builder.start()
    try {
      assert(process.waitFor(LimitSeconds, TimeUnit.SECONDS), s"the doctor did not end: $command")
      Ended(process.exitValue, Files.readString(out), Files.readString(err))
    } finally {
      process.destroyForcibly()
      Files.delete(out)
      Files.delete(err)
    }
  }

  private def withFolder[T](body: Path => T): T = {
    // The tests' own temporary folder is too deep for the paths of sockets.
    val folder = Files.createTempDirectory(Paths.get("/tmp"), "doctor")
    try {
      val result = body(folder)
      val left = Using.resource(Files.list(folder))(_.iterator.asScala.toSeq)
      assert(left.isEmpty, "what was left behind")
      result
    } finally {
      Local.delete(folder)
    }
  }

  test("the jar alone examines its machine, and leaves nothing behind") {
    val ended = withFolder { folder =>
      alone(
        folder, "doctor", "--json", "--conf", s"spark.zerohop.socket.dir=${folder.resolve("s")}")
    }
    ended.assertConsistent()
    // An older libucx speaks of what it does not know.
    assert(ended.err.linesIterator.filterNot(_.contains(" UCX ")).isEmpty, ended.err)
    for (check <- Seq("java", "glibc", "library", "memfd", "sockets", "peers"))
      assert(ended.of(check).map(_.get("verdict").asText) === Seq("ok"), ended.out)
    for (check <- Seq("memlock", "files", "processes", "memory", "shm", "driver", "libucx", "port"))
      assert(ended.of(check).size === 1, ended.out)
    val spark = ended.of("spark").head
    assert(spark.get("what").asText.contains("Spark is not on the class path"))
    assert(spark.get("remedy").asText.contains("--spark-home"))
    val rates = ended.json.get("processes").get(0).get("rates").asScala.toSeq
    for (path <- Seq("local", "peer", "staged"))
      assert(rates.exists(rate =>
          rate.get("path").asText == path && rate.get("gigabytesPerSecond").asDouble > 0))
  }

  test("the jar alone prints text, and says how it is called") {
    val ended = withFolder { folder =>
      alone(
        folder,
        "doctor",
        "--no-measure",
        "--conf",
        s"spark.zerohop.socket.dir=${folder.resolve("s")}")
    }
    assert(ended.out.linesIterator.exists(_.startsWith("ok   memfd ")), ended.out)
    assert(ended.out.linesIterator.toSeq.last.endsWith(" failed"), ended.out)
    val wrong = withFolder(alone(_, "doctor", "--jsn"))
    assert(wrong.exit === 64)
    assert(wrong.err.contains("--json"))
    assert(withFolder(alone(_, "--help")).out.contains("doctor"))
    assert(withFolder(alone(_, "doctor", "--version")).out.startsWith("Zerohop "))
    val missing = withFolder(alone(_, "doctor", "--properties-file", "not-there.conf"))
    assert(missing.exit === 64)
    assert(missing.err.linesIterator.next().contains("not-there.conf"), missing.err)
  }

  test("what the environment names is not loaded") {
    val home = Files.createTempDirectory("other-spark")
    try {
      // A class that Spark's jars have, whose code ends the process.
      val source = home.resolve("LoggerFactory.java")
      Files.writeString(
        source,
        "package org.slf4j; public class LoggerFactory { static { Runtime.getRuntime().halt(99); } }")
      assert(javax.tools.ToolProvider.getSystemJavaCompiler.run(
        null, null, null, "-proc:none", "-cp", home.toString, "-d", home.toString,
        source.toString) === 0)
      val jars = Files.createDirectory(home.resolve("jars"))
      Using.resource(new JarOutputStream(Files.newOutputStream(jars.resolve("evil.jar")))) { jar =>
        val name = "org/slf4j/LoggerFactory.class"
        jar.putNextEntry(new JarEntry(name))
        jar.write(Files.readAllBytes(home.resolve(name)))
        jar.closeEntry()
      }
      val ended = withFolder { folder =>
        alone(
          folder,
          Map("SPARK_HOME" -> home.toString),
          Seq("doctor", "--json", "--no-measure", "--conf",
            s"spark.zerohop.socket.dir=${folder.resolve("s")}"))
      }
      ended.assertConsistent()
      assert(ended.of("spark").head.get("remedy").asText.contains(s"--spark-home $home"))
    } finally Local.delete(home)
  }

  test("with an installation of Spark the jar judges settings, by name the mend") {
    val home = SparkHomes.of("4.1.3")
    requireHome(home)
    val ended = withFolder { folder =>
      alone(
        folder,
        "doctor",
        "--json",
        "--no-measure",
        "--spark-home",
        home.path.toString,
        "--conf",
        s"spark.zerohop.socket.dir=${folder.resolve("s")}",
        "--conf",
        "spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager",
        "--conf",
        "spark.shuffle.service.enabled=true")
    }
    assert(ended.exit === 2)
    assert(ended.of("spark").head.get("what").asText === "Spark 4.1.3")
    val aside = ended.of("steps-aside").head
    assert(aside.get("verdict").asText === "fail")
    assert(aside.get("remedy").asText.contains("spark.shuffle.service.enabled=false"))
  }

  // Those whose Scala and whose classes differ most.
  for (home <- Seq(SparkHomes.all.head, SparkHomes.all.last))
    test(s"as an application it examines each executor of $home") {
      val report = asApplication(home, Seq("--no-measure"), "spark.zerohop.pool.size" -> "128m")
      assert(report.of("sizes").takeRight(2).map(verdict) === Seq("ok", "ok"), report.out)
    }

  test("as README starts it an application measures each path") {
    val report = asApplication(SparkHomes.of("4.1.3"), Nil)
    // Spark's default overhead leaves nothing for blocks of two executors, or little.
    val sizes = report.of("sizes").takeRight(2).map(verdict)
    assert(sizes.size === 2 && sizes.forall(Set("ok", "warn")), report.out)
    val rates = report.json.get("processes").asScala.toSeq.tail.map(_.get("rates").asScala.toSeq)
    assert(rates.size === 2)
    for (executor <- rates; path <- Seq("local", "peer", "staged"))
      assert(executor.exists(rate =>
          rate.get("path").asText == path && rate.get("gigabytesPerSecond").asDouble > 0),
        report.out)
  }

  private def verdict(finding: JsonNode): String = finding.get("verdict").asText

  private def asApplication(
      home: SparkHome,
      arguments: Seq[String],
      more: (String, String)*): Ended = {
    requireHome(home)
    val conf = Map(
      "spark.master" -> "local-cluster[2,1,1024]",
      "spark.executor.memory" -> "512m",
      "spark.shuffle.manager" -> ManagerUnderTest.name) ++ more
    val ended = SparkSubmitProcess.run(
      home, conf, "io.zerohop.spark.Doctor", SparkHomes.zerohopJar, "--json" +: arguments)
    val report = Ended(ended.exit, ended.stdout.linesIterator.find(_.startsWith("{")).get, "")
    report.assertConsistent()
    val names = report.json.get("processes").asScala.map(_.get("process").asText).toSeq
    assert(names.map(_.split(" on ").head) === Seq("driver", "executor 0", "executor 1"))
    for (check <- Seq("versions", "library", "memfd", "sockets", "peers", "reach"))
      assert(report.of(check).takeRight(2).map(verdict) === Seq("ok", "ok"), check + report.out)
    assert(report.of("spark").map(_.get("what").asText) === Seq(s"Spark ${home.version}"))
    report
  }

  test("an executor with a jar of another release is found, by name the mend") {
    val other = JarCopy.of(
      new File(sys.props(ExecutorPath)),
      _.getMainAttributes.put(Attributes.Name.IMPLEMENTATION_VERSION, "0.0.9-other"))
    try {
      val cluster = new Cluster(1, Map(ExecutorPath -> other.toString))
      val report =
        try Doctor.examine(cluster.sc, false)
        finally cluster.close()
      val lines = report.linesIterator.toSeq
      val found = lines.indexWhere(_.startsWith("fail versions"))
      assert(found >= 0 && lines(found).contains("0.0.9-other"), report)
      assert(lines(found + 1).contains("the same zerohop-spark jar"), report)
    } finally Files.delete(other)
  }
}
