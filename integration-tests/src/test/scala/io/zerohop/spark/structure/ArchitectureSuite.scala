package io.zerohop.spark.structure

import java.nio.file.{Files, Paths}
import java.util.jar.JarFile

import scala.jdk.CollectionConverters._

import com.tngtech.archunit.base.DescribedPredicate
import com.tngtech.archunit.core.domain.{JavaClass, JavaClasses, JavaMethodCall}
import com.tngtech.archunit.core.importer.ClassFileImporter
import com.tngtech.archunit.lang.ArchRule
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses
import com.tngtech.archunit.library.dependencies.{SliceAssignment, SliceIdentifier}
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices
import io.zerohop.spark.support.RunBy
import io.zerohop.spark.versions.SparkHomes
import org.scalatest.funsuite.AnyFunSuite
import org.slf4j.LoggerFactory

/**
 * The arrows between the rooms point one way: plugin -> shuffle -> native, and so do those between
 * the packages of each.
 */
@RunBy.Verify
class ArchitectureSuite extends AnyFunSuite {
  private lazy val classes: JavaClasses =
    new ClassFileImporter().importJar(new JarFile(SparkHomes.zerohopJar.toFile))

  private val Plugin = "io.zerohop.spark.."
  private val Shuffle = "io.zerohop.shuffle.."
  private val Native = "io.zerohop.device.."
  private val Spark = Seq("org.apache.spark..", "org.sparkproject..", "scala..")
  private val Levels =
    Set("warn", "error", "atWarn", "atError", "atLevel", "makeLoggingEventBuilder")
  private val Gpu = Seq("jcuda..", "ai.rapids..", "com.nvidia..")

  private val Watching = Seq("ui", "report", "doctor").map(name => s"io.zerohop.spark.$name..")
  private val Commands = Set("Main", "Commands", "Doctor").map(name => s"io.zerohop.spark.$name")

  private val SystemTime = Set(
    "java.lang.System" -> "nanoTime",
    "java.lang.System" -> "currentTimeMillis",
    "java.lang.Thread" -> "sleep"
  )

  /** Those that may use the system's time, and why. */
  private val Timed = Set(
    // The clock itself.
    "io.zerohop.device.posix.Clock",
    // They only measure how long something took, for a metric or a page.
    "io.zerohop.spark.rapids.RapidsReader",
    "io.zerohop.spark.rapids.RapidsWriter",
    "io.zerohop.spark.rows.MapOutputBuffer",
    "io.zerohop.spark.doctor.GpuPair",
    "io.zerohop.spark.doctor.NodePair",
    "io.zerohop.spark.doctor.RateCheck",
    // The doctor's own process, which waits for others, and a cluster's executors to come.
    "io.zerohop.spark.doctor.Launcher",
    "io.zerohop.spark.doctor.SparkApplication",
    // They say when something was, as pages and logs show it.
    "io.zerohop.spark.report.ReportCounters$ReaderCounts",
    "io.zerohop.spark.report.ReportCounters",
    "io.zerohop.spark.ui.ShuffleReportEvent"
  )

  /** What ways between nodes share. */
  private val Remote = transport("remote")

  private def transport(name: String) = s"io.zerohop.shuffle.transport.$name.."

  /** Each package of its own beside what ways between nodes share. */
  private lazy val transports: Set[String] =
    classes.asScala
      .map(_.getPackageName)
      .flatMap("""io\.zerohop\.shuffle\.transport\.(\w+)""".r.findPrefixMatchOf(_))
      .map(found => transport(found.group(1)))
      .toSet - Remote

  test("native knows neither shuffles nor Spark") {
    check(Native, Seq(Shuffle, Plugin) ++ Spark)
  }

  test("shuffle knows neither Spark nor CUDA") {
    check(Shuffle, Plugin +: (Spark ++ Gpu))
  }

  test("transports know neither one another nor who chooses between them") {
    assert(Set("samenode", "ucx").map(transport).subsetOf(transports))
    transports.foreach(each => check(each, (transports - each).toSeq))
    check(Remote, transports.toSeq)
    check(transport("samenode"), Seq(Remote))
    check("io.zerohop.shuffle.transport..",
      Seq("fetch", "route", "spill").map(name => s"io.zerohop.shuffle.$name.."))
  }

  test("readers know no transport, but for what chooses between them") {
    check("io.zerohop.shuffle.fetch", transports.toSeq)
  }

  test("nothing but commands depends on the tab, the reports to it or the doctor") {
    unwatched(Commands).check(classes)
  }

  test("the rule fails where a class depends on one of them") {
    val rule = unwatched(Commands - "io.zerohop.spark.Doctor")
    val found = intercept[AssertionError](rule.check(classes))
    assert(found.getMessage.contains("io.zerohop.spark.doctor."))
  }

  test("the rule fails where an arrow is turned around") {
    val found = intercept[AssertionError](check(Plugin, Seq(Shuffle)))
    assert(found.getMessage.contains("io.zerohop.shuffle"))
  }

  test("every warning and every error has a code of the runbook") {
    uncoded("io.zerohop..").check(classes)
  }

  test("the rule fails where a logger is called without a code") {
    val own = new ClassFileImporter().importClasses(classOf[UncodedWarning])
    val found = intercept[AssertionError](uncoded("io.zerohop..").check(own))
    assert(found.getMessage.contains("UncodedWarning"))
  }

  test("the system's time is read, and waited for, by one clock") {
    timed("io.zerohop..").check(classes)
  }

  test("the rule fails where a class reads the system's time") {
    val own = new ClassFileImporter().importClasses(classOf[ImpatientReader])
    val found = intercept[AssertionError](timed("io.zerohop..").check(own))
    assert(found.getMessage.contains("ImpatientReader"))
  }

  for ((module, room) <- Seq("native" -> Native, "shuffle" -> Shuffle, "plugin" -> Plugin))
    test(s"no package of $module depends on itself by way of others") {
      slices().assignedFrom(packages(room, _.getPackageName)).should().beFreeOfCycles().check(
        classes)
    }

  for (module <- Seq("native", "shuffle", "plugin"))
    test(s"architecture.md has each package of $module") {
      assert(unlisted(tableOf(module)) === Seq())
    }

  for (module <- Seq("shuffle", "plugin"))
    test(s"packages of $module depend on those that architecture.md lists below them") {
      assert(upwards(tableOf(module)) === Seq())
    }

  test("a package without a row is said, and one that depends on a row above") {
    val table = tableOf("shuffle")
    assert(unlisted(table - "io.zerohop.shuffle.spill").forall(_.contains("shuffle.spill")))
    assert(unlisted(table - "io.zerohop.shuffle.spill").nonEmpty)
    val turned = table.map { case (name, row) => name -> -row }
    assert(
      upwards(turned).exists(_.contains("io.zerohop.shuffle.fetch -> io.zerohop.shuffle.block")))
  }

  test("the rule fails where packages form a cycle") {
    val halves = packages(Plugin, one => if (one.getSimpleName.hashCode % 2 == 0) "even" else "odd")
    val found = intercept[AssertionError](
      slices().assignedFrom(halves).should().beFreeOfCycles().check(classes)
    )
    assert(found.getMessage.contains("Cycle detected"))
  }

  /** Warnings and errors are logged by a `Message`, which has a code that docs/runbook.md explains. */
  private def uncoded(room: String): ArchRule = {
    val raw = new DescribedPredicate[JavaMethodCall]("SLF4J's warn or error") {
      override def test(call: JavaMethodCall): Boolean =
        call.getTargetOwner.getFullName == "org.slf4j.Logger" && Levels(call.getName)
    }
    noClasses
      .that()
      .resideInAPackage(room)
      .and()
      .doNotHaveFullyQualifiedName("io.zerohop.device.Message")
      .should()
      .callMethodWhere(raw)
  }

  /**
   * Limits, periods and pauses go by a `Clock` that is handed in, so that tests need not wait for them.
   * Libraries in the jar have their own.
   */
  private def timed(room: String): ArchRule = {
    val system = new DescribedPredicate[JavaMethodCall]("the system's time or a sleep") {
      override def test(call: JavaMethodCall): Boolean =
        SystemTime(call.getTargetOwner.getFullName -> call.getName)
    }
    noClasses.that().resideInAPackage(room).and(allBut(Timed)).should().callMethodWhere(system)
  }

  /**
   * The tab and the doctor show what shuffles do. Shuffles do the same without: the implementations of
   * `watch` are found by class name.
   *
   * @param commands classes that start one of them as a command
   */
  private def unwatched(commands: Set[String]): ArchRule =
    noClasses
      .that()
      .resideOutsideOfPackages(
        Watching ++ Seq("rdmaproof", "keeperdaemon").map(name => s"io.zerohop.spark.$name.."): _*)
      .and(allBut(commands))
      .should()
      .dependOnClassesThat()
      .resideInAnyPackage(Watching: _*)

  private def allBut(named: Set[String]) =
    new DescribedPredicate[JavaClass]("all but those that are named") {
      override def test(one: JavaClass): Boolean =
        !one.getPackageName.startsWith("io.zerohop.shaded.") &&
          !named.exists(name => one.getFullName == name || one.getFullName.startsWith(name + "$"))
    }

  /** The packages that the page lists of a module, each with the number of its row. */
  private def tableOf(module: String): Map[String, Int] = {
    val page =
      Files.readString(Paths.get(sys.props("zerohop.test.repository"), "docs/architecture.md"))
    val section = page.split("\n### ").find(_.startsWith(s"`$module`")).get
    val rows = section.linesIterator.filter(_.startsWith("| `")).map(_.split('|')(1)).toSeq
    val named = rows.map("`([^`/]+)`".r.findAllMatchIn(_).map(_.group(1)).toSeq)
    val root = named.head.head
    named.zipWithIndex.flatMap { case (names, row) =>
      names.map(name => (if (name == root) root else root + name) -> row)
    }.toMap
  }

  /** The row of a package, which may be that of one around it, but for the module's own. */
  private def rowOf(name: String, table: Map[String, Int]): Option[Int] =
    Iterator.iterate(name)(inner => inner.take(inner.lastIndexOf('.')))
      .takeWhile(outer => outer == name || outer.length > rootOf(table).length)
      .flatMap(table.get)
      .nextOption()

  private def rootOf(table: Map[String, Int]): String = table.keys.minBy(_.length)

  private def inside(table: Map[String, Int]): Seq[JavaClass] =
    classes.asScala.toSeq.filter(one =>
      (one.getPackageName + ".").startsWith(rootOf(table) + "."))

  private def unlisted(table: Map[String, Int]): Seq[String] =
    inside(table).map(_.getPackageName).distinct.filter(rowOf(_, table).isEmpty).sorted

  /** The arrows that point to a row further up. */
  private def upwards(table: Map[String, Int]): Seq[String] = {
    val arrows = for {
      one <- inside(table)
      dependency <- one.getDirectDependenciesFromSelf.asScala
      from <- rowOf(one.getPackageName, table)
      to <- rowOf(dependency.getTargetClass.getPackageName, table)
      if to < from
    } yield s"${one.getPackageName} -> ${dependency.getTargetClass.getPackageName}"
    arrows.distinct.sorted
  }

  /** The classes of a room by packages, or by what stands for them. */
  private def packages(room: String, of: JavaClass => String) = new SliceAssignment {
    override def getIdentifierOf(one: JavaClass): SliceIdentifier =
      if (one.getPackageName.startsWith(room.stripSuffix(".."))) SliceIdentifier.of(of(one))
      else SliceIdentifier.ignore()

    override def getDescription: String = s"the packages of $room"
  }

  private def check(room: String, forbidden: Seq[String]): Unit = {
    val rule: ArchRule = noClasses
      .that()
      .resideInAPackage(room)
      .should()
      .dependOnClassesThat()
      .resideInAnyPackage(forbidden: _*)
    rule.check(classes)
  }
}

/** Does what the rule on warnings forbids. */
private class UncodedWarning {
  def say(): Unit = LoggerFactory.getLogger(getClass).warn("something")
}

/** Does what the rule on time forbids. */
private class ImpatientReader {
  def read(): Long = System.nanoTime()
}
