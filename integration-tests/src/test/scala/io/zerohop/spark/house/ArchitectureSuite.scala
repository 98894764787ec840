package io.zerohop.spark.house

import java.util.jar.JarFile

import com.tngtech.archunit.core.domain.JavaClasses
import com.tngtech.archunit.core.importer.ClassFileImporter
import com.tngtech.archunit.lang.ArchRule
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses
import io.zerohop.spark.versions.SparkHomes
import org.scalatest.funsuite.AnyFunSuite

/** The arrows between the rooms point one way: plugin -> shuffle -> native. */
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

  test("the rule fails where an arrow is turned around") {
    val found = intercept[AssertionError](check(Plugin, Seq(Shuffle)))
    assert(found.getMessage.contains("io.zerohop.shuffle"))
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
