package io.zerohop.spark.support

import java.nio.file.{Files, Paths}

import scala.util.Try

/**
 * A process of this host, told from a later one of its number by its start. Numbers come again
 * within minutes on a host of many threads, also as a thread's.
 *
 * @param start in the kernel's ticks since the system began
 */
final case class HostProcess(pid: Long, start: Long) {

  /** Whether it still runs; a zombie does not, though its number stays until it is reaped. */
  def lives: Boolean = HostProcess.of(pid).contains(this)

  /** SIGKILL, if it still runs; returns at once. */
  def kill(): Unit =
    if (lives) ProcessHandle.of(pid).ifPresent { process => process.destroyForcibly(); () }

  /** Its state and its command, or that it is gone. */
  def describe: String =
    HostProcess.state(pid).fold(s"process $pid is gone") { state =>
      s"process $pid, state $state, since $start: ${HostProcess.words(pid).mkString(" ").take(200)}"
    }
}

object HostProcess {

  /** The process that runs by this number now, if one does. */
  def of(pid: Long): Option[HostProcess] =
    for {
      fields <- stat(pid) if !Ended(fields.head) && isProcess(pid)
    } yield HostProcess(pid, fields(StartField).toLong)

  /** Its command line; empty once its memory is gone. */
  def words(pid: Long): Seq[String] =
    read(pid, "cmdline").fold(Seq.empty[String])(_.split('\u0000').toSeq.filter(_.nonEmpty))

  private def state(pid: Long): Option[String] = stat(pid).map(_.head)

  /** From its state on: the name before it may have blanks. */
  private def stat(pid: Long): Option[IndexedSeq[String]] =
    read(pid, "stat").map(line => line.drop(line.lastIndexOf(')') + 2).trim.split(' ').toIndexedSeq)

  /** Not a thread, which has a folder in `/proc` as well. */
  private def isProcess(pid: Long): Boolean =
    read(pid, "status").exists(_.linesIterator.exists(_.matches(s"Tgid:\\s+$pid")))

  private def read(pid: Long, name: String): Option[String] =
    Try(Files.readString(Paths.get("/proc", pid.toString, name))).toOption.filter(_.nonEmpty)

  private val Ended = Set("Z", "X", "x")

  /** Field 22 of the line, whose state is field 3. */
  private val StartField = 22 - 3
}
