package io.zerohop.spark.structure

import java.lang.reflect.Modifier
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}
import scala.xml.{Elem, XML}

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory
import com.tngtech.archunit.ArchConfiguration
import com.tngtech.archunit.core.domain.{JavaClass, JavaModifier}
import com.tngtech.archunit.core.importer.ClassFileImporter
import io.zerohop.spark.support.RunBy
import org.scalatest.{Suite, TagAnnotation}
import org.scalatest.funsuite.AnyFunSuite

/**
 * No test is written that nobody runs: each suite is run by `verify` or by a profile, and each class
 * of unit tests by surefire.
 */
@RunBy.Verify
class ProfilesSuite extends AnyFunSuite {
  import ProfilesSuite._

  private val repository = Paths.get(sys.props("zerohop.test.repository")).toAbsolutePath.normalize
  private val rootPom = XML.loadFile(repository.resolve("pom.xml").toFile)
  private val suitesPom = XML.loadFile(repository.resolve("integration-tests/pom.xml").toFile)

  test("each suite is run by verify or by a profile") {
    val found = suites(ownClasses)
    assert(found.contains(classOf[ProfilesSuite]) && found.size > 50)
    assert(found.flatMap(unreached(_, commands(rootPom))) === Nil)
  }

  test("a suite without an annotation, or with one that no profile names, is found") {
    assert(unreached(classOf[Untagged], commands(rootPom)) === Some(
      s"${classOf[Untagged].getName} has no annotation of RunBy: no command runs it"))
    assert(unreached(classOf[ProfilesSuite], commands(rootPom)) === None)
    val without = commands(rootPom).filterNot(_._2 == classOf[RunBy.Verify].getName)
    assert(unreached(classOf[ProfilesSuite], without) === Some(
      s"${classOf[ProfilesSuite].getName}: no profile of pom.xml names ${classOf[RunBy.Verify].getName}"))
  }

  test("-Pfull runs what no other command of CI does, but for what is downloaded first") {
    val apart = Set(classOf[RunBy.Verify], classOf[RunBy.Yarn]).map(_.getName)
    val all = classOf[RunBy].getDeclaredClasses.map(_.getName).toSet
    assert(all.forall(tag => commands(rootPom).exists(_._2 == tag)))
    assert(commands(rootPom).collect { case ("full", tag) => tag }.toSet === all -- apart)
    // Suites of several annotations, which the run of verify before has had.
    val full = (rootPom \ "profiles" \ "profile").filter(one => (one \ "id").text == "full")
    assert((full \ "properties" \ "excluded.suites").text === classOf[RunBy.Verify].getName)
    assert((suitesPom \\ "tagsToExclude").text === "${excluded.suites}")
  }

  test("the properties of the profiles are what ScalaTest is given") {
    val wanted = (suitesPom \\ "tagsToInclude").text.split(',').toSet
    assert(wanted === (rootPom \ "properties" \ "_").map(_.label).filter(isTags).map(name =>
      s"$${$name}").toSet)
    for (profile <- rootPom \ "profiles" \ "profile"; set <- profile \ "properties" \ "_"
      if isTags(set.label))
      assert(wanted(s"$${${set.label}}"), (profile \ "id").text)
  }

  test("skips.txt has as many tests of a suite for GPUs as the suite") {
    val list = Files.readAllLines(repository.resolve("integration-tests/checks/skips.txt")).asScala
    val Line = "[a-z,-]+ +([0-9]+) +([^ ]+)".r
    val listed = list.collect {
      case Line(tests, suite) => suite -> tests.toInt
    }.groupMapReduce(_._1)(_._2)(_ + _)
    val written = suites(ownClasses).filter(_.isAnnotationPresent(classOf[RunBy.Gpu])).map { one =>
      one.getName -> one.getConstructor().newInstance().asInstanceOf[Suite].testNames.size
    }
    assert(written.size > 10)
    assert(written.filterNot(one => listed.get(one._1).contains(one._2)) === Nil)
  }

  test("CI runs verify, and then -Pfull") {
    val lines = Files.readAllLines(repository.resolve(".ci/run")).asScala.map(_.trim)
    val commands = lines.filter(_.startsWith("mvn "))
    assert(commands === Seq("mvn -B verify", "mvn -B verify -Pfull").map(_ + " || status=$?"))
    assert(lines.last === "exit \"$status\"")
  }

  test("the workflow of a public host runs .ci/run, and profiles that are there") {
    val file = repository.resolve(".github/workflows/ci.yml").toFile
    val workflow = new ObjectMapper(new YAMLFactory).readTree(file)
    val runs = workflow.findValuesAsText("run").asScala
    assert(runs.contains(".ci/run") && runs.contains("mvn -B verify \"-P$PROFILE\""))
    val named = workflow.at("/jobs/profile/strategy/matrix/profile").asScala.map(_.asText).toSeq
    val there = (rootPom \ "profiles" \ "profile" \ "id").map(_.text)
    assert(named.nonEmpty && named.diff(there) === Nil)
    // A tag can be moved, a commit cannot.
    val actions = workflow.findValuesAsText("uses").asScala
    assert(actions.nonEmpty && actions.forall(_.matches("actions/[a-z-]+@[0-9a-f]{40}")))
  }

  test("each class of unit tests is run by surefire") {
    val modules = (rootPom \ "modules" \ "module").map(_.text).filter { module =>
      Files.isDirectory(
        repository.resolve(s"$module/src/test/java")) && module != "integration-tests"
    }
    assert(modules.size >= 3)
    val folders = modules.map(module => repository.resolve(s"$module/target/test-classes"))
    for (folder <- folders) assert(Files.isDirectory(folder), "it is not built")
    // What these classes extend of their own is all that is looked at of others.
    val classes = ArchConfiguration.withThreadLocalScope { (here: ArchConfiguration) =>
      here.setResolveMissingDependenciesFromClassPath(false)
      new ClassFileImporter().importPaths(folders: _*).asScala.toSeq
    }
    val tests = classes.filter(hasTests).map(outermost(_).getName).distinct
    assert(tests.size > 100)
    assert(tests.filterNot(_.matches(ByName)) === Nil)
    // What is left out at first has to be run by an execution that -Pfull switches on.
    val poms = modules.map(module => XML.loadFile(repository.resolve(s"$module/pom.xml").toFile))
    assert(poms.flatMap(_ \\ "excludedGroups").map(_.text) === Seq("no-libucx"))
    val full = (rootPom \ "profiles" \ "profile").filter(one => (one \ "id").text == "full")
    assert((full \ "properties" \ "no-libucx.skip").text === "${skipTests}")
  }

  test("a build writes below target alone, wherever a property of its command points to") {
    val poms = (rootPom \ "modules" \ "module").map(_.text)
      .map(module => XML.loadFile(repository.resolve(s"$module/pom.xml").toFile))
    val written = (rootPom +: poms).flatMap(_ \\ "outputDirectory").map(_.text)
    assert(written.size > 5)
    assert(written.filterNot(_.startsWith("${project.build.")) === Nil)
  }

  test("a class of unit tests whose name surefire passes over is found") {
    for (name <- Seq("a.b.CopyTest", "TestCopy", "CopyTests", "CopyTestCase"))
      assert(name.matches(ByName))
    for (name <- Seq("a.b.CopyCheck", "a.Test.Copy", "Testing.Copies"))
      assert(!name.matches(ByName))
  }
}

private object ProfilesSuite {
  private val Jupiter = "org.junit.jupiter"
  private val Tests =
    Seq("api.Test", "api.TestFactory", "api.RepeatedTest", "params.ParameterizedTest",
      "api.TestTemplate")
      .map(name => s"$Jupiter.$name") :+ "com.code_intelligence.jazzer.junit.FuzzTest"

  /** What surefire includes by itself. */
  private val ByName = raw"(.*\.)?(Test[^.]*|[^.]*(Test|Tests|TestCase))"

  /** Takes an argument, so that ScalaTest does not find it. */
  private class Untagged(reason: String) extends AnyFunSuite {
    test(s"nobody runs this: $reason")(fail())
  }

  private def ownClasses: Path =
    Paths.get(classOf[ProfilesSuite].getProtectionDomain.getCodeSource.getLocation.toURI)

  private def isTags(property: String): Boolean =
    property.startsWith("suites.") && property != "suites.skip"

  /** Which annotation of a suite which command runs: the id of a profile, or "" for verify. */
  private def commands(pom: Elem): Seq[(String, String)] = {
    def tags(id: String, properties: scala.xml.NodeSeq) =
      (properties \ "_").filter(one => isTags(one.label) && one.text.nonEmpty).map(one =>
        id -> one.text)
    tags("", pom \ "properties") ++
      (pom \ "profiles" \ "profile").flatMap(one => tags((one \ "id").text, one \ "properties"))
  }

  /** Why no command runs a suite. */
  private def unreached(suite: Class[_], commands: Seq[(String, String)]): Option[String] = {
    val tags = suite.getAnnotations.toSeq.map(_.annotationType)
      .filter(one =>
        one.getEnclosingClass == classOf[RunBy] && one.isAnnotationPresent(classOf[TagAnnotation]))
      .map(_.getName)
    if (tags.isEmpty) Some(s"${suite.getName} has no annotation of RunBy: no command runs it")
    else tags.find(tag => !commands.exists(_._2 == tag))
      .map(tag => s"${suite.getName}: no profile of pom.xml names $tag")
  }

  /** What ScalaTest finds in a folder of classes. */
  private def suites(folder: Path): Seq[Class[_]] =
    Using.resource(Files.walk(folder)) {
      _.iterator.asScala.map(folder.relativize(_).toString).filter(_.endsWith(".class")).toSeq
    }
      .map(file => file.stripSuffix(".class").replace('/', '.'))
      .flatMap(name => Try(Class.forName(name, false, getClass.getClassLoader)).toOption)
      .filter { one =>
        classOf[Suite].isAssignableFrom(one) && !Modifier.isAbstract(one.getModifiers) &&
        one.getConstructors.exists(_.getParameterCount == 0)
      }

  private def hasTests(one: JavaClass): Boolean =
    !one.getModifiers.contains(JavaModifier.ABSTRACT) &&
      one.getAllMethods.asScala.exists(method => Tests.exists(method.isAnnotatedWith(_: String)))

  private def outermost(one: JavaClass): JavaClass =
    if (one.getEnclosingClass.isPresent) outermost(one.getEnclosingClass.get) else one
}
