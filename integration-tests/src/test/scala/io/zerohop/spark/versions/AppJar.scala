package io.zerohop.spark.versions

import java.nio.file.{Files, Path, Paths}
import java.util.jar.{JarEntry, JarOutputStream}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** The applications that tests submit: their classes, and none of the tests' libraries. */
object AppJar {
  lazy val path: Path = {
    val target = Paths.get(sys.props("zerohop.test.target"))
    val jar = target.resolve("test-applications.jar")
    val folder = classOf[ShuffleApp].getPackageName.replace('.', '/')
    val classes = Using.resource(Files.list(target.resolve("test-classes").resolve(folder))) {
      _.iterator.asScala.filter(_.getFileName.toString.matches("\\w+App(\\$.*)?\\.class")).toVector
    }
    Using.resource(new JarOutputStream(Files.newOutputStream(jar))) { out =>
      classes.foreach { file =>
        out.putNextEntry(new JarEntry(s"$folder/${file.getFileName}"))
        out.write(Files.readAllBytes(file))
        out.closeEntry()
      }
    }
    jar
  }

  /** The `name=value` pairs of the line that an application has printed. */
  def report(stdout: String, prefix: String): Map[String, String] =
    stdout.linesIterator.find(_.startsWith(prefix)) match {
      case Some(line) => line.split(' ').tail.map(_.split('=')).map(p => p(0) -> p(1)).toMap
      case None => throw new AssertionError(s"no line '$prefix' in: $stdout")
    }
}
