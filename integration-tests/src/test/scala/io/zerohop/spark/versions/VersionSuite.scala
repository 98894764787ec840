package io.zerohop.spark.versions

import java.nio.file.{Files, Path, Paths}
import java.util.jar.{JarEntry, JarOutputStream}

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import org.scalatest.funsuite.AnyFunSuite

/** The one jar starts on every supported Spark, and its executors read each other's memory. */
class VersionSuite extends AnyFunSuite with NeedsSparkHome {
  private val conf = Map(
    "spark.master" -> "local-cluster[2,1,1024]",
    "spark.executor.memory" -> "512m",
    "spark.shuffle.manager" -> ManagerUnderTest.name,
    "spark.zerohop.pool.size" -> "128m",
    "spark.sql.shuffle.partitions" -> "4")

  for (home <- SparkHomes.all) {
    test(s"an RDD and a SQL shuffle on $home") {
      requireHome(home)
      val ended = SparkSubmitProcess.run(home, conf, classOf[ShuffleApp].getName, appJar)
      assert(ended.exit === 0, s"see ${ended.log}")
      val report = parse(ended.stdout)
      assert(report("version") === home.version)
      assert(report("rdd") === "199990000")
      assert(report("groups") === "1000")
      assert(report("sum") === "4999950000")
      if (ManagerUnderTest.isZerohop) {
        assert(report("zerohop.peer.bytes").toLong > 0)
        assert(report.getOrElse("zerohop.staged.bytes", "0") === "0")
      }
    }
  }

  private def parse(stdout: String): Map[String, String] = {
    val line = stdout.linesIterator.find(_.startsWith("shuffle-app:"))
    assert(line.isDefined, stdout)
    line.get.split(' ').tail.map(_.split('=')).map(pair => pair(0) -> pair(1)).toMap
  }

  /** The application alone: its classes, and none of the test's libraries. */
  private lazy val appJar: Path = {
    val target = Paths.get(sys.props("zerohop.test.target"))
    val jar = target.resolve("shuffle-app.jar")
    val folder = s"${classOf[ShuffleApp].getPackageName.replace('.', '/')}"
    val classes = Using.resource(Files.list(target.resolve("test-classes").resolve(folder))) {
      _.iterator.asScala.filter(_.getFileName.toString.startsWith("ShuffleApp")).toVector
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
}
