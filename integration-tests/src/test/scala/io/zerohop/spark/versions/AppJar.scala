package io.zerohop.spark.versions

import java.nio.file.{Files, Path, Paths}
import java.util.jar.{JarEntry, JarOutputStream}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.platforms.ShellApp
import io.zerohop.spark.support.PathBytes
import io.zerohop.gpu.{GpuChecksumApp, Strike, TaskRepeats}
import org.apache.spark.zerohop.ForgetfulShuffleManager

/** The applications that tests submit: their classes, and none of the tests' libraries. */
object AppJar {
  private val Applications = Seq(
    classOf[ShuffleApp],
    classOf[ShellApp],
    classOf[TabApp],
    classOf[OneKeyApp],
    classOf[ConnectServerApp],
    classOf[ConnectClientApp],
    classOf[PathBytes],
    classOf[RoundRobinApp],
    classOf[ForgetfulShuffleManager],
    classOf[GpuChecksumApp],
    classOf[Strike],
    classOf[TaskRepeats])

  lazy val path: Path = {
    val target = Paths.get(sys.props("zerohop.test.target"))
    val repository = Paths.get(sys.props("zerohop.test.repository"))
    val benchmarks = repository.resolve("benchmarks/spark/target/classes")
    val jar = target.resolve("test-applications.jar")
    Using.resource(new JarOutputStream(Files.newOutputStream(jar))) { out =>
      for {
        application <- Applications
        folder = application.getPackageName.replace('.', '/')
        name = s"${application.getSimpleName}(\\$$.*)?\\.class"
        classes <- Seq(target.resolve("test-classes"), benchmarks)
        file <- list(classes.resolve(folder))
        if file.getFileName.toString.matches(name)
      } {
        out.putNextEntry(new JarEntry(s"$folder/${file.getFileName}"))
        out.write(Files.readAllBytes(file))
        out.closeEntry()
      }
    }
    jar
  }

  private def list(folder: Path): Seq[Path] =
    if (!Files.isDirectory(folder)) Nil
    else Using.resource(Files.list(folder))(_.iterator.asScala.toVector)

  /** The `name=value` pairs of the line that an application has printed. */
  def report(stdout: String, prefix: String): Map[String, String] =
    stdout.linesIterator.find(_.startsWith(prefix)) match {
      case Some(line) => line.split(' ').tail.map(_.split('=')).map(p => p(0) -> p(1)).toMap
      case None => throw new AssertionError(s"no line '$prefix' in: $stdout")
    }
}
