package io.zerohop.spark.structure

import java.util.jar.JarFile

import com.tngtech.archunit.core.domain.{JavaClass, JavaClasses}
import com.tngtech.archunit.core.importer.ClassFileImporter
import com.tngtech.archunit.lang.ArchRule
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses
import com.tngtech.archunit.library.dependencies.{SliceAssignment, SliceIdentifier}
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices
import io.zerohop.spark.versions.SparkHomes
import org.scalatest.funsuite.AnyFunSuite

/**
 * The arrows between the rooms point one way: plugin -> shuffle -> native, and so do those between
 * the packages of each.
 */
class ArchitectureSuite extends AnyFunSuite {
  private lazy val classes: JavaClasses =
    new ClassFileImporter().importJar(new JarFile(SparkHomes.zerohopJar.toFile))

  private val Plugin = "io.zerohop.spark.."
  private val Shuffle = "io.zerohop.shuffle.."
  private val Native = "io.zerohop.device.."
  private val Spark = Seq("org.apache.spark..", "org.sparkproject..", "scala..")
  private val Gpu = Seq("jcuda..", "ai.rapids..", "com.nvidia..")

  test("native knows neither shuffles nor Spark") {
    check(Native, Seq(Shuffle, Plugin) ++ Spark)
  }

  test("shuffle knows neither Spark nor CUDA") {
    check(Shuffle, Plugin +: (Spark ++ Gpu))
  }

  test("transports know neither one another nor who chooses between them") {
    val mapped = "io.zerohop.shuffle.transport.mapped.."
    val ucx = "io.zerohop.shuffle.transport.ucx.."
    check(mapped, Seq(ucx))
    check(ucx, Seq(mapped))
    check("io.zerohop.shuffle.transport..", Seq("io.zerohop.shuffle.fetch..", "io.zerohop.shuffle.spill.."))
  }

  test("readers know no transport, but for what chooses between them") {
    check(
      "io.zerohop.shuffle.fetch",
      Seq("io.zerohop.shuffle.transport.mapped..", "io.zerohop.shuffle.transport.ucx..")
    )
  }

  test("the rule fails where an arrow is turned around") {
    val found = intercept[AssertionError](check(Plugin, Seq(Shuffle)))
    assert(found.getMessage.contains("io.zerohop.shuffle"))
  }

  for ((module, room) <- Seq("native" -> Native, "shuffle" -> Shuffle, "plugin" -> Plugin))
    test(s"no package of $module depends on itself by way of others") {
      slices().assignedFrom(packages(room, _.getPackageName)).should().beFreeOfCycles().check(classes)
    }

  test("the rule fails where packages form a cycle") {
    val halves = packages(Plugin, one => if (one.getSimpleName.hashCode % 2 == 0) "even" else "odd")
    val found = intercept[AssertionError](
      slices().assignedFrom(halves).should().beFreeOfCycles().check(classes)
    )
    assert(found.getMessage.contains("Cycle detected"))
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
