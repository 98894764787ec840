package io.zerohop.spark.faults

import java.io.File
import java.nio.file.{Files, Path}
import java.util.jar.Attributes

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, JarCopy, RunBy}
import org.apache.spark.SparkException
import org.scalatest.funsuite.AnyFunSuite

/** A jar of another release on executors, as while a cluster is upgraded. */
@RunBy.Faults
class MixedJarsSuite extends AnyFunSuite {
  private val ClassPath = "spark.executor.extraClassPath"

  test("executors with another release are refused, by name") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle is no jar of ours")
    val other = otherRelease(new File(sys.props(ClassPath)))
    val settings = Map(ClassPath -> other.toString, "spark.task.maxFailures" -> "1")
    val cluster = new Cluster(2, settings)
    try {
      val failure = intercept[SparkException] {
        cluster.run("a shuffle") {
          Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ())
        }
      }
      assert(failure.getMessage.contains("the driver has Zerohop "), failure.getMessage)
      assert(failure.getMessage.contains(s" has ${MixedJarsSuite.Other};"), failure.getMessage)
    } finally {
      cluster.close()
      Files.delete(other)
    }
  }

  /** The same jar, but that its manifest tells of another release. */
  private def otherRelease(jar: File): Path =
    JarCopy.of(
      jar,
      manifest => {
        val version = Attributes.Name.IMPLEMENTATION_VERSION
        assert(manifest.getMainAttributes.put(version, MixedJarsSuite.Other) != null)
      })
}

private object MixedJarsSuite {
  val Other = "0.0.9-other"
}
