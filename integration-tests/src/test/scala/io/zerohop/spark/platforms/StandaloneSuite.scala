package io.zerohop.spark.platforms

import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.tools.nsc.interpreter.IMain
import scala.util.{Try, Using}
import scala.util.matching.Regex

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Http, Local, RunBy}
import io.zerohop.spark.versions.{AppJar, SparkHomes}
import org.scalatest.funsuite.AnyFunSuite

/**
 * The commands of docs/quick-start.md, as they are, with the command files of
 * docs/platforms/standalone.md: a cluster, the doctor, and a shell whose sum and tab are right.
 */
@RunBy.Platforms
class StandaloneSuite extends AnyFunSuite {
  private val Limit = 150.seconds
  private val repository = Distribution.repository
  private val page = Files.readString(repository.resolve("docs/quick-start.md"))

  test("the quick start's cluster, doctor and shell do what the page says") {
    assume(ManagerUnderTest.isZerohop, "the page is about Zerohop")
    val target = Paths.get(sys.props("zerohop.test.target")).toAbsolutePath
    val folder =
      Files.createTempDirectory(Files.createDirectories(target.resolve("platforms")), "sa-")
    val home = Distribution.of(SparkHomes.of("4.1.3"), folder.resolve("spark"))
    val compiler = Paths.get(classOf[IMain].getProtectionDomain.getCodeSource.getLocation.toURI)
    Distribution.script(home, "spark-shell",
      s"""exec "$$SPARK_HOME/bin/spark-submit" --jars '$compiler' "$$@" \\
         |  --class ${classOf[ShellApp].getName} '${AppJar.path}'
         |""".stripMargin)
    val port = Local.freePort()
    val environment = Map(
      "SPARK_HOME" -> home.toString,
      "SPARK_SCALA_VERSION" -> "2.13",
      "SPARK_LOCAL_IP" -> "127.0.0.1",
      "ZEROHOP_JAR" -> SparkHomes.zerohopJar.toString,
      "MASTER" -> s"spark://127.0.0.1:$port",
      "MASTER_PORT" -> port.toString,
      // Without files of settings, as a new Spark is.
      "SPARK_CONF_DIR" -> Files.createDirectory(folder.resolve("conf")).toString)
    val starting = command("examples/standalone/start.sh")
      .replaceFirst(" > cluster.log 2>&1 &$", "")
    val cluster = bash(starting, folder, "start", environment)
    try {
      val doctor = bash(command("examples/standalone/submit.sh"), folder, "doctor", environment)
      // A busy machine measures slow paths, which is status 1 and no fault.
      val report = ends(doctor, folder, "doctor", Set(0, 1))
      assert(report.contains("0 failed"))
      assert(report.linesIterator.filter(_.startsWith("warn")).forall(_.startsWith("warn rates ")),
        report)

      val shell = bash(command("$SPARK_HOME/bin/spark-shell"), folder, "shell", environment)
      try {
        val input = shell.outputWriter
        input.write(s"${between("scala> ", "\n")}\n")
        input.flush()
        def said = Files.readString(folder.resolve("shell.out"))
        val sum = s"\\| *${between("The sum is ", ":")} *\\|".r
        Bounded.until("the shell's sum", Limit) {
          sum.findFirstIn(said).isDefined || !shell.isAlive
        }
        val address = "(?<=Web UI available at )\\S+".r.findFirstIn(said)
          .getOrElse(fail(s"see $folder/shell.err"))
        assert(sum.findFirstIn(said).isDefined, s"see $folder/shell.err")
        // Executors report what they have read a moment later.
        var read = Map.empty[String, Long]
        Bounded.until(s"bytes that were read in place in the tab, now $read", 30.seconds) {
          read = Try(linkBytes(Http.get(address + between("http://localhost:4040", "`"))))
            .getOrElse(Map.empty)
          read.getOrElse("peer", 0L) > 0
        }
        assert(read.getOrElse("staged", 0L) === 0, read)
        assert(logs(home).exists(logLine.findFirstIn(_).isDefined), home)
        input.close()
        ends(shell, folder, "shell")
      } finally Distribution.end(shell)
    } finally Distribution.end(cluster)
    Local.delete(folder)
  }

  /** The bytes of each path in the tab's table of links. */
  private def linkBytes(tab: String): Map[String, Long] = {
    val table = tab.substring(tab.indexOf("id=\"zerohop-links\""))
    val rows = table.substring(0, table.indexOf("</table>")).split("<tr>").toSeq.tail
    val cell = "<td(?: sorttable_customkey=\"(\\d+)\"|[^>]*)>([^<]*)".r
    rows.map(cell.findAllMatchIn(_).toSeq)
      .collect { case Seq(_, _, path, _, bytes, _*) => path.group(2) -> bytes.group(1).toLong }
      .toMap
  }

  /** The line of an executor's log that the page quotes, with any numbers in it. */
  private def logLine: Regex = {
    val quoted = between("Each executor's log, `$SPARK_HOME/work/app-*/*/stderr`, says `", "`")
    Regex.quote(quoted).replace("executor 0", "executor \\E\\d+\\Q").replace(" N ",
      " \\E\\d+\\Q ").r
  }

  private def logs(home: Path): Seq[String] =
    Using.resource(Files.walk(home.resolve("work"))) {
      _.iterator.asScala.filter(_.endsWith("stderr")).map(Files.readString(_)).toVector
    }

  /** The command of the page that begins so, with the lines that it goes on in. */
  private def command(start: String): String = {
    val at = page.indexOf(s"\n$start") + 1
    assert(at > 0, s"the page has no command $start")
    "(?s)(?:[^\n]*\\\\\n)*[^\n]*".r.findPrefixOf(page.substring(at)).get
  }

  private def between(before: String, after: String): String = {
    val at = page.indexOf(before) + before.length
    assert(at >= before.length, s"the page has no '$before'")
    page.substring(at, page.indexOf(after, at))
  }

  private def bash(
      command: String,
      folder: Path,
      name: String,
      environment: Map[String, String]): Process =
    Distribution.process(Seq("bash", "-c", s"cd '$repository' && exec $command"), folder, name,
      environment)
      .start()

  /** What it has printed, once it has ended well. */
  private def ends(
      process: Process,
      folder: Path,
      name: String,
      statuses: Set[Int] = Set(0)): String =
    try {
      assert(process.waitFor(Limit.toSeconds, TimeUnit.SECONDS), s"no end in $Limit: $folder")
      assert(statuses(process.exitValue), s"${process.exitValue}: see $folder/$name.err")
      Files.readString(folder.resolve(s"$name.out"))
    } finally Distribution.end(process)
}
