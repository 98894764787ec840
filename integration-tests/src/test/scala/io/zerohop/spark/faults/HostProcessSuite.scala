package io.zerohop.spark.faults

import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit

import scala.util.Using

import io.zerohop.spark.support.{Cluster, HostProcess, RunBy}
import org.scalatest.funsuite.AnyFunSuite

/** What the fault suites rely on to tell a process that runs from what is left of one. */
@RunBy.Faults
class HostProcessSuite extends AnyFunSuite {

  test("a killed process that its parent does not reap is dead") {
    // The shell's child becomes one of a program that waits for none.
    withProcess("sleep 600 & echo $!; exec sleep 600") { (parent, line) =>
      val child = HostProcess.of(line.toLong).get
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
      val thread = threads.mapToLong(_.getFileName.toString.toLong).filter(_ != own).max
      assert(ProcessHandle.of(thread.getAsLong).isPresent)
      assert(HostProcess.of(thread.getAsLong) === None)
    }
    assert(HostProcess.of(own).exists(_.lives))
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
