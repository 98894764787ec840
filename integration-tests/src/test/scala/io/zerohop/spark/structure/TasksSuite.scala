package io.zerohop.spark.structure

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.support.RunBy
import org.scalatest.funsuite.AnyFunSuite

/** Every task of the Makefile is described, and what its command names is there. */
@RunBy.Verify
class TasksSuite extends AnyFunSuite {
  private val repository = Paths.get(sys.props("zerohop.test.repository")).toAbsolutePath.normalize
  private val lines = Files.readAllLines(repository.resolve("Makefile")).asScala.toSeq

  private val variables = lines.collect {
    case s"$name = $value" if name.matches("[A-Z]+") => name -> value
  }.toMap

  private val commands = lines.filter(_.startsWith("\t")).map(line => expand(line.strip))

  /** Variables of the caller, which have no value in the file, stay as they are. */
  private def expand(line: String): String =
    variables.foldLeft(line) { case (text, (name, value)) => text.replace(s"$$($name)", value) }

  test("tasks have a description in one line") {
    val targets = lines.filter(_.matches("[a-z][a-z0-9-]*:.*"))
    assert(targets.size > 20)
    assert(targets.filterNot(_.matches("[a-z][a-z0-9-]*: ## .{10,110}")) === Nil)
  }

  test("scripts are there and can be run") {
    val scripts = words("(?:\\./)?[\\w./-]+\\.(?:sh|py)(?![\\w.])|\\./demo")
    assert(scripts.size > 10)
    assert(scripts.filterNot(script => Files.isExecutable(repository.resolve(script))) === Nil)
  }

  test("profiles and modules are those of the poms") {
    val poms = files("pom.xml").map(Files.readString(_))
    val profiles = words("(?<=-P)[\\w-]+")
    assert(profiles.size > 5)
    assert(profiles.filterNot(name => poms.exists(_.contains(s"<id>$name</id>"))) === Nil)
    val modules = words("(?<=-pl )[\\w,/-]+").flatMap(_.split(','))
    assert(modules.filterNot(m => Files.exists(repository.resolve(m).resolve("pom.xml"))) === Nil)
  }

  test("test classes and suites are there") {
    val names = words("(?<=-Dtest=)'?[\\w*,]+|(?<=-Dsuites=)[\\w.,]+").flatMap(_.split(','))
      .map(_.stripPrefix("'").split('.').last)
      .filter(_ != "NoSuchTest")
    assert(names.size > 5)
    val classes = (files(".java") ++ files(".scala"))
      .map(_.getFileName.toString.replaceFirst("\\.\\w+$", ""))
    val missing = names.filterNot { name =>
      val pattern = name.replace("*", ".*")
      classes.exists(_.matches(pattern))
    }
    assert(missing === Nil)
  }

  private def words(pattern: String): Seq[String] =
    commands.flatMap(pattern.r.findAllIn(_).toSeq).distinct

  private def files(ending: String): Seq[Path] =
    Using.resource(Files.walk(repository)) {
      _.iterator.asScala
        .filter(file => file.toString.endsWith(ending) && !file.toString.contains("/target/"))
        .toVector
    }
}
