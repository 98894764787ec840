package io.zerohop.spark.faults

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import io.zerohop.spark.Doctor
import io.zerohop.spark.support.{Cluster, Local, RunBy}
import org.scalatest.funsuite.AnyFunSuite

/**
 * What executors listen at from their start to their end, at the defaults: seen by a library that is
 * loaded before the C library, however short it is.
 */
@RunBy.Faults
class ListenersSuite extends AnyFunSuite {
  test("executors listen where Spark's listen, and so they do with a doctor in them") {
    Local.require("cc")
    val folder = Files.createTempDirectory(Paths.get("/tmp"), "listens")
    try {
      val log = folder.resolve("listeners.txt")
      val cluster = new Cluster(
        2,
        Map(
          "spark.executorEnv.LD_PRELOAD" -> library(folder).toString,
          "spark.executorEnv.LISTENERS" -> log.toString),
        shape = Cluster.Plain)
      val executors =
        try {
          val found = cluster.pids.values.toSet
          cluster.run("a shuffle")(cluster.sc.parallelize(1 to 1000, 4).map(i =>
              (i % 7, i)).reduceByKey(_ + _).collect())
          val report = Doctor.examine(cluster.sc, true)
          assert(report.contains("spark.zerohop.ucx.trustedNetwork=true"), report)
          found
        } finally cluster.close()
      val seen =
        Files.readAllLines(log).asScala.toSeq.map(_.split(" ", 2)).groupMap(_(0).toLong)(_(1))
      for (pid <- executors) {
        val (files, ports) = seen(pid).partition(_.startsWith("unix /"))
        // The block manager's; no control port, no UCX, no socket with an abstract name.
        assert(ports.size === 1 && ports.head.startsWith("tcp "), seen)
        assert(files.forall(_.startsWith("unix /tmp/zerohop-")), seen)
      }
    } finally Local.delete(folder)
  }

  private def library(folder: Path): Path = {
    val made = folder.resolve("listens.so")
    val source = Paths.get(sys.props("zerohop.test.repository"), "plugin/src/test/c/listens.c")
    val compiler = new ProcessBuilder(
      "cc", "-shared", "-fPIC", "-o", made.toString, source.toString, "-ldl").inheritIO().start()
    assert(compiler.waitFor() === 0)
    made
  }
}
