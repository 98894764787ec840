package io.zerohop.spark.faults

import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.util.Using

import io.zerohop.device.posix.{Descriptor, NativeLibrary, Sockets}
import io.zerohop.spark.support.{Bounded, Cluster, HostProcess, RunBy, UnixSocket}
import org.apache.commons.io.FileUtils
import org.scalatest.funsuite.AnyFunSuite

/** What the fault suites rely on to tell a process that runs from what is left of one. */
@RunBy.Faults
class HostProcessSuite extends AnyFunSuite {

  test("a killed process that its parent does not reap is dead") {
    // The shell's child becomes one of a program that waits for none.
    withProcess("sleep 600 & echo $!; exec sleep 600") { (parent, line) =>
      val child = HostProcess.of(line.toLong).get
      // A shell may still reap what ends before its exec.
      Bounded.until("the shell's exec", 20.seconds) {
        Files.readString(Paths.get("/proc", s"${parent.pid}", "comm")).trim == "sleep"
      }
      Cluster.kill(child.pid)
      assert(Files.exists(Paths.get("/proc", line)))
      assert(!child.lives)
      assert(HostProcess.of(child.pid) === None)
      assert(child.describe.contains("state Z"))
      assert(HostProcess.of(parent.pid).exists(_.lives))
    }
  }

  test("all victims are killed before one of them is waited for") {
    withProcess("sleep 600 & echo $!; exec sleep 600") { (parent, line) =>
      Cluster.kill(line.toLong, parent.pid)
      assert(parent.waitFor(20, TimeUnit.SECONDS))
    }
  }

  test("a thread is no process, whatever its number was before") {
    val own = ProcessHandle.current.pid
    Using.resource(Files.list(Paths.get("/proc/self/task"))) { threads =>
      // The eldest: one that was started for something may end meanwhile.
      val thread = threads.mapToLong(_.getFileName.toString.toLong).filter(_ != own).min
      assert(ProcessHandle.of(thread.getAsLong).isPresent)
      assert(HostProcess.of(thread.getAsLong) === None)
    }
    assert(HostProcess.of(own).exists(_.lives))
  }

  test("a socket of a JVM's own is not taken for one of ours") {
    val own = UnixSocket.of(ProcessHandle.current.pid)
    assert(own.nonEmpty && !own.exists(_.isOurs), own)
  }

  test("a socket of ours is told with its path, its process and its other end") {
    NativeLibrary.require()
    val folder = Files.createTempDirectory(Paths.get("/tmp"), "zh")
    val path = folder.resolve("socket").toString
    val pid = ProcessHandle.current.pid
    val listener = Sockets.listen(path, 1)
    val client = Sockets.connect(path)
    val accepted = Sockets.accept(listener)
    try {
      val ours = UnixSocket.of(pid).filter(_.isOurs)
      assert(ours.map(_.descriptor).toSet === Set(listener, client, accepted))
      def told(descriptor: Int, ends: Map[Long, Long] = Map.empty): String =
        ours.find(_.descriptor == descriptor).get.describe(ends)
      assert(told(listener).endsWith(s"listens at $path"))
      assert(told(accepted).endsWith(s"was accepted at $path, other end unknown"))
      val ends = Map(ours.find(_.descriptor == client).get.inode -> 0L)
      assert(told(client, ends).endsWith("has connected, other end closed"))
      // A host without ss knows none.
      for ((inode, end) <- UnixSocket.otherEnds if ours.exists(_.inode == inode) && end != 0)
        assert(told(client, UnixSocket.otherEnds).endsWith(s"of process $pid"), s"$inode $end")
    } finally {
      Seq(accepted, client, listener).foreach(Descriptor.close)
      FileUtils.deleteDirectory(folder.toFile)
    }
  }

  /** Ends with the process, whose first line comes along. */
  private def withProcess(script: String)(body: (Process, String) => Unit): Unit = {
    val process = new ProcessBuilder("sh", "-c", script).start()
    try body(process, process.inputReader.readLine())
    finally {
      process.children.forEach { child => child.destroyForcibly(); () }
      process.destroyForcibly()
      ()
    }
  }
}
