package io.zerohop.spark.rdma

import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._

/**
 * What an executor does to itself or to its machine, which has no other users.
 *
 * @param command of the shell's, as root
 */
final case class Strike(command: String) {
  import Strike._

  /** Has a thread of this process do it as soon as a file exists; not at all after a while. */
  def whenThereIs(marker: Path): Unit = {
    val thread = new Thread(() => await(marker), "strike")
    thread.setDaemon(true)
    thread.start()
  }

  private def await(marker: Path): Unit = {
    val patience = Patience.fromNow
    while (!Files.exists(marker) && patience.hasTimeLeft()) Thread.sleep(PollMillis)
    if (patience.hasTimeLeft()) now()
  }

  /** Does it, and waits for its end. */
  def now(): Unit = {
    val ended = new ProcessBuilder("sh", "-c", command).inheritIO().start().waitFor()
    if (ended != 0) throw new IllegalStateException(s"'$command' ended with $ended")
  }
}

object Strike {
  private val Patience = 5.minutes
  private val PollMillis = 10L

  /** SIGKILL to the process that does it. */
  val KillThisProcess: Strike = Strike("kill -9 $PPID")

  /** Name of the machine of the process that calls this. */
  def machine: String = Files.readString(Paths.get("/proc/sys/kernel/hostname")).trim
}
