package io.zerohop.spark.faults

import java.io.UncheckedIOException
import java.nio.file.{Files, NoSuchFileException, Path, Paths}
import java.nio.file.attribute.BasicFileAttributes

import scala.annotation.tailrec
import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try, Using}

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{
  Bounded, Cluster, ExecutorMemory, Holdings, HostProcess, Leftover, RunBy
}
import org.apache.commons.io.FileUtils
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

/** However an executor ends, it leaves no socket, and nobody holds its memory any more. */
@RunBy.Faults
class CleanupSuite extends AnyFunSuite with BeforeAndAfterEach {
  private var sockets: Path = _

  // A Unix-domain socket's path has at most 107 bytes, so it is a short one.
  override protected def beforeEach(): Unit =
    sockets = Files.createTempDirectory(Paths.get("/tmp"), "zh")

  // Executors that are ending remove what is theirs at the same time.
  override protected def afterEach(): Unit =
    Bounded.until(s"$sockets removed", 30.seconds) {
      FileUtils.deleteQuietly(sockets.toFile) || !Files.exists(sockets)
    }

  test("application end") {
    val held = inCluster { cluster =>
      assertShuffling(cluster)
      new Executors(cluster.pids.values.toSeq)
    }
    held.assertGone()
    assertNoSockets()
  }

  test("SIGTERM") {
    inCluster { cluster =>
      assertShuffling(cluster)
      val old = new Executors(cluster.pids.values.toSeq)
      val sockets = socketFiles
      old.pids.foreach(pid => ProcessHandle.of(pid).ifPresent { p => p.destroy(); () })
      old.assertGone()
      Bounded.until(s"sockets removed: $socketFiles", 30.seconds) {
        socketFiles.intersect(sockets).isEmpty
      }
      cluster.awaitExecutors()
      assertShuffling(cluster)
    }
    assertNoSockets()
  }

  test("SIGKILL: memory goes with the process, a survivor sweeps the socket") {
    inCluster { cluster =>
      assertShuffling(cluster)
      val sockets = socketFiles
      val (victim, pid) = cluster.pids.head
      val held = new Executors(Seq(pid))
      cluster.kill(victim)
      held.assertGone()
      cluster.awaitExecutors()
      assertShuffling(cluster)
      Bounded.until(s"a dead socket removed of $sockets; there are $socketFiles", 30.seconds) {
        sockets.exists(socket => !socketFiles.contains(socket))
      }
    }
    assertNoSockets()
  }

  test("SIGKILL of all: the next application sweeps") {
    inCluster { cluster =>
      assertShuffling(cluster)
      // All at once, and the application ends before others take their place.
      val all = new Executors(cluster.pids.values.toSeq)
      Cluster.kill(all.pids: _*)
      all.assertGone()
    }
    inCluster(assertShuffling)
    assertNoSockets()
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

  /** Executors that live, and the memory that they have; it has no names but in `/proc`. */
  private final class Executors(val pids: Seq[Long]) {
    private val processes = pids.flatMap(HostProcess.of(_))
    private val memory = pids.flatMap(new Holdings(_).owned).toSet
    assert(memory.nonEmpty)

    /** The processes end, and soon nobody else holds their memory, neither mapped nor open. */
    def assertGone(): Unit = {
      Bounded.until(s"end of $pids", 60.seconds)(processes.forall(!_.lives))
      var holders = Seq.empty[Long]
      Leftover.unless(s"memory of $pids, which $holders hold") {
        holders = ProcessHandle.allProcesses.iterator.asScala.map(_.pid)
          .filter(new Holdings(_).held.exists(memory)).toSeq
        holders.isEmpty
      }
    }
  }

  /** Executors may end a moment after their application. */
  private def assertNoSockets(): Unit =
    Leftover.unless(s"sockets removed: $socketFiles")(socketFiles.isEmpty)

  /**
   * What lies below the socket folder, which goes itself when it is empty. Looks again if something
   * was removed meanwhile.
   */
  @tailrec
  private def socketFiles: Set[Path] =
    if (!Files.exists(sockets)) Set.empty
    else Try(walk()) match {
      case Success(found) => found
      case Failure(_: NoSuchFileException) => socketFiles
      case Failure(e: UncheckedIOException) if e.getCause.isInstanceOf[NoSuchFileException] =>
        socketFiles
      case Failure(e) => throw e
    }

  private def walk(): Set[Path] =
    Using.resource(Files.walk(sockets)) {
      _.iterator.asScala
        .filter(path => Files.readAttributes(path, classOf[BasicFileAttributes]).isOther)
        .toSet
    }
}
