package io.zerohop.spark.faults

import java.nio.file.{FileAlreadyExistsException, Files, Path, Paths}

import scala.jdk.CollectionConverters._

import io.zerohop.spark.support.{Cluster, HostProcess}
import org.apache.spark.SparkEnv

/**
 * A fault that a task commits when it comes by, once however often the task is run again: the first
 * to create the marker file does it.
 *
 * @param marker path of a file that does not exist yet
 */
final case class Fault(marker: String) {
  import Fault._

  /** SIGKILL to the executor that runs the calling task; the call does not return. */
  def killSelf(): Unit = if (isFirst) {
    noteVictims(Map(SparkEnv.get.executorId -> ProcessHandle.current.pid))
    // The shell's own: a machine with nothing but what README names has no kill beside it.
    new ProcessBuilder("sh", "-c", s"kill -9 ${ProcessHandle.current.pid}").start().waitFor()
    Thread.sleep(DeadlineMillis)
    throw new IllegalStateException("SIGKILL did not end this process")
  }

  /** SIGKILL to every other executor of the application; returns when they are gone. */
  def killOthers(): Unit = if (isFirst) {
    val victims = Cluster.otherExecutors
    noteVictims(victims)
    Cluster.kill(victims.values.toSeq: _*)
  }

  /** SIGSTOP to every other executor of the application, for so long; returns at once. */
  def pauseOthers(seconds: Int): Unit =
    if (isFirst) Cluster.otherExecutors.values.foreach(Cluster.pause(_, seconds))

  /** SIGSTOP to the executor that runs the calling task; returns when it goes on. */
  def pauseSelf(seconds: Int): Unit =
    if (isFirst) Cluster.pause(ProcessHandle.current.pid, seconds)

  /** Runs `strike` after `note` was written into the marker file. */
  def once(note: => String)(strike: => Unit): Unit = if (isFirst) {
    Files.writeString(Paths.get(marker), note)
    strike
  }

  /** How many executors it has killed: those that are gone of the ones that it was to kill. */
  def killed: Int = noted.count(!_.process.lives)

  /** The executors that it was to kill, and what has become of each. */
  def victims: Seq[String] =
    noted.map(victim => s"executor ${victim.executor}: ${victim.process.describe}")

  def happened: Boolean = Files.exists(Paths.get(marker))

  /** What was noted when it happened. */
  def note: Option[String] =
    if (happened) Some(Files.readString(Paths.get(marker))).filter(_.nonEmpty) else None

  private def noteVictims(pids: Map[String, Long]): Unit = {
    val lines = for ((executor, pid) <- pids; process <- HostProcess.of(pid))
      yield s"$executor ${process.pid} ${process.start}"
    Files.write(victimsFile, lines.asJava)
    ()
  }

  private def noted: Seq[Victim] =
    if (!Files.exists(victimsFile)) Nil
    else
      Files.readAllLines(victimsFile).asScala.toSeq.map(_.split(' ')).map {
        case Array(executor, pid, start) => Victim(executor, HostProcess(pid.toLong, start.toLong))
      }

  private def victimsFile: Path = Paths.get(s"$marker.victims")

  // Who comes by with every record shall not pay for a file that cannot be made.
  private def isFirst: Boolean = !happened && (
    try {
      Files.createFile(Paths.get(marker))
      true
    } catch { case _: FileAlreadyExistsException => false })
}

object Fault {
  private val DeadlineMillis = 30000L

  private final case class Victim(executor: String, process: HostProcess)

  def in(folder: Path): Fault =
    Fault(folder.resolve(s"fault-${java.util.UUID.randomUUID}").toString)
}
