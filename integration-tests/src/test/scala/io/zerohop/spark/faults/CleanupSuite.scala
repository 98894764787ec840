package io.zerohop.spark.faults

import java.nio.file.{Files, Path, Paths}
import java.nio.file.attribute.BasicFileAttributes

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Cluster, ExecutorMemory}
import org.apache.commons.io.FileUtils
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** However an executor ends, it leaves no socket, no file in shared memory and no memory. */
class CleanupSuite extends AnyFunSuite with BeforeAndAfterEach {
  private var sockets: Path = _

  // A Unix-domain socket's path has at most 107 bytes, so it is a short one.
  override protected def beforeEach(): Unit =
    sockets = Files.createTempDirectory(Paths.get("/tmp"), "zh")

  override protected def afterEach(): Unit = FileUtils.deleteDirectory(sockets.toFile)

  test("application end") {
    val before = sharedMemoryFiles
    val pids = inCluster { cluster =>
      assertShuffling(cluster)
      cluster.pids.values.toSeq
    }
    assertGone(pids)
    assert(socketFiles.isEmpty)
    assert((sharedMemoryFiles -- before).isEmpty)
  }

  test("SIGTERM") {
    val before = sharedMemoryFiles
    inCluster { cluster =>
      assertShuffling(cluster)
      val old = cluster.pids.values.toSeq
      val sockets = socketFiles
      old.foreach(pid => ProcessHandle.of(pid).ifPresent { p => p.destroy(); () })
      assertGone(old)
      Bounded.until(s"sockets removed: $socketFiles", 30.seconds) {
        socketFiles.intersect(sockets).isEmpty
      }
      cluster.awaitExecutors()
      assertShuffling(cluster)
    }
    assert(socketFiles.isEmpty)
    assert((sharedMemoryFiles -- before).isEmpty)
  }

  test("SIGKILL: memory goes with the process, a survivor sweeps the socket") {
    val before = sharedMemoryFiles
    inCluster { cluster =>
      assertShuffling(cluster)
      val sockets = socketFiles
      val (victim, pid) = cluster.pids.head
      cluster.kill(victim)
      assertGone(Seq(pid))
      cluster.awaitExecutors()
      assertShuffling(cluster)
      Bounded.until(s"a dead socket removed of $sockets; there are $socketFiles", 30.seconds) {
        sockets.exists(socket => !socketFiles.contains(socket))
      }
    }
    assert(socketFiles.isEmpty)
    assert((sharedMemoryFiles -- before).isEmpty)
  }

  test("SIGKILL of all: the next application sweeps") {
    val before = sharedMemoryFiles
    inCluster { cluster =>
      assertShuffling(cluster)
      // All at once, and the application ends before others take their place.
      val pids = cluster.pids.values.toSeq
      pids.foreach(Cluster.kill)
      assertGone(pids)
    }
    inCluster(assertShuffling)
    assert(socketFiles.isEmpty)
    assert((sharedMemoryFiles -- before).isEmpty)
  }

  private def inCluster[T](body: Cluster => T): T = {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no sockets")
    Cluster.withCluster(2, "spark.zerohop.socket.dir" -> sockets.toString)(body)
  }

  private def assertShuffling(cluster: Cluster): Unit = {
    val answer = cluster.run("shuffle") {
      Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ())
    }
    assert(answer === Workload.expected)
    assert(socketFiles.nonEmpty)
    assert(cluster.pids.values.forall(pid => ExecutorMemory.memfds(pid).nonEmpty))
  }

  /** The processes are gone, and nobody else holds their memory. */
  private def assertGone(pids: Seq[Long]): Unit = {
    Bounded.until(s"end of $pids", 60.seconds)(pids.forall(!ProcessHandle.of(_).isPresent))
    pids.foreach(pid => assert(ExecutorMemory.memfds(pid).isEmpty))
  }

  /** What lies below the socket folder, which goes itself when it is empty. */
  private def socketFiles: Set[Path] =
    if (!Files.exists(sockets)) Set.empty
    else
      Using.resource(Files.walk(sockets)) {
        _.iterator.asScala
          .filter(path => Files.readAttributes(path, classOf[BasicFileAttributes]).isOther)
          .toSet
      }

  private def sharedMemoryFiles: Set[Path] =
    Using.resource(Files.list(Paths.get("/dev/shm"))) {
      _.iterator.asScala.filter(_.getFileName.toString.contains("zerohop")).toSet
    }
}
