package io.zerohop.spark.faults

import java.io.{BufferedOutputStream, File}
import java.nio.file.Files
import java.util.jar.{Attributes, JarFile, JarOutputStream, Manifest}
import java.util.zip.ZipEntry

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.Cluster
import org.apache.spark.SparkException
import org.scalatest.funsuite.AnyFunSuite

/** A jar of another release on executors, as while a cluster is upgraded. */
class MixedJarsSuite extends AnyFunSuite {
  private val ClassPath = "spark.executor.extraClassPath"

  test("executors with another release are refused, by name") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle is no jar of ours")
    val other = otherRelease(new File(sys.props(ClassPath)))
    val settings = Map(ClassPath -> other.getPath, "spark.task.maxFailures" -> "1")
    val cluster = new Cluster(2, settings)
    try {
      val failure = intercept[SparkException] {
        cluster.run("a shuffle") {
          Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ())
        }
      }
      assert(failure.getMessage.contains("The driver has Zerohop "), failure.getMessage)
      assert(failure.getMessage.contains(s" has ${MixedJarsSuite.Other}."), failure.getMessage)
    } finally {
      cluster.close()
      Files.delete(other.toPath)
    }
  }

  /** The same jar, but that its manifest tells of another release. */
  private def otherRelease(jar: File): File = {
    val other = Files.createTempFile("zerohop-other", ".jar")
    Using.resource(new JarFile(jar)) { from =>
      val manifest = new Manifest(from.getManifest)
      assert(manifest.getMainAttributes.getValue(Attributes.Name.IMPLEMENTATION_VERSION) != null)
      manifest.getMainAttributes.put(Attributes.Name.IMPLEMENTATION_VERSION, MixedJarsSuite.Other)
      val out = new BufferedOutputStream(Files.newOutputStream(other))
      Using.resource(new JarOutputStream(out, manifest)) { to =>
        from.entries.asScala.filter(_.getName != JarFile.MANIFEST_NAME).foreach { entry =>
          to.putNextEntry(new ZipEntry(entry.getName))
          Using.resource(from.getInputStream(entry))(_.transferTo(to))
          to.closeEntry()
        }
      }
    }
    other.toFile
  }
}

private object MixedJarsSuite {
  val Other = "0.0.9-other"
}
