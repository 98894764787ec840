package io.zerohop.spark.support

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.sys.process._
import scala.util.{Try, Using}

/**
 * A Unix-domain socket that a process holds, as `/proc` shows it.
 *
 * @param inode its number, by which the kernel names both ends of a connection
 * @param path empty at the end that connected; one that was accepted has its listener's
 * @param flags of the descriptor, see `fcntl.h`
 */
final case class UnixSocket(
    pid: Long,
    descriptor: Int,
    inode: Long,
    isStream: Boolean,
    isListening: Boolean,
    path: String,
    flags: Int) {
  import UnixSocket._

  /**
   * Whether it may be Zerohop's, whose sockets are streams, never block and end with exec. That of
   * each JVM, which has no other end, blocks, and the one of CUDA is no stream.
   */
  def isOurs: Boolean = isStream && (flags & (NonBlock | CloseOnExec)) == (NonBlock | CloseOnExec)

  /** @param others the other ends, where they can be known */
  def describe(others: Map[Long, Long]): String = {
    val role =
      if (isListening) "listens at"
      else if (path.isEmpty) "has connected"
      else "was accepted at"
    val other = others.get(inode) match {
      case _ if isListening => ""
      case None => ", other end unknown"
      case Some(0) => ", other end closed"
      case Some(end) => s", other end $end of ${holders(end).mkString(" and ")}"
    }
    val whose = if (isOurs) "" else " (not ours)"
    s"$descriptor: $inode ${if (isStream) "stream" else "no stream"}$whose, " +
      s"flags ${flags.toOctalString}, $role${if (path.isEmpty) "" else s" $path"}$other"
  }
}

object UnixSocket {
  // As <asm-generic/fcntl.h> has them.
  private val NonBlock = Integer.parseInt("4000", 8)
  private val CloseOnExec = Integer.parseInt("2000000", 8)

  /** In the flags of `/proc/net/unix`. */
  private val Listening = 0x10000

  private val Stream = "0001"

  /** All that a process has open; empty if it is gone. */
  def of(pid: Long): Seq[UnixSocket] = {
    val folder = Paths.get("/proc", pid.toString)
    val known = lines(folder.resolve("net/unix")).drop(1)
      .map(_.trim.split(" +", 8)).map(fields => fields(6).toLong -> fields).toMap
    for {
      link <- entries(folder.resolve("fd"))
      inode <- inodeOf(link)
      fields <- known.get(inode)
    } yield UnixSocket(
      pid,
      link.getFileName.toString.toInt,
      inode,
      fields(4) == Stream,
      (Integer.parseInt(fields(3), 16) & Listening) != 0,
      fields.lift(7).getOrElse(""),
      flagsOf(folder.resolve(s"fdinfo/${link.getFileName}")))
  }

  /** The other end of each connection of this host, 0 for none, by inode; only `ss` tells. */
  def otherEnds: Map[Long, Long] =
    Try(Seq("timeout", "10", "ss", "-xanH").!!(ProcessLogger(_ => ())).linesIterator)
      .fold(_ => Map.empty[Long, Long],
        _.map(_.trim.split(" +")).flatMap { fields =>
          Try(fields(5).toLong -> fields(7).toLong).toOption
        }.toMap)

  private def holders(inode: Long): Seq[String] = {
    val pids = ProcessHandle.allProcesses.iterator.asScala.map(_.pid).filter { pid =>
      entries(Paths.get("/proc", pid.toString, "fd")).exists(inodeOf(_).contains(inode))
    }.toSeq
    if (pids.isEmpty) Seq("no process") else pids.map(pid => s"process $pid")
  }

  private def inodeOf(link: Path): Option[Long] =
    Try(Files.readSymbolicLink(link).toString).toOption.collect { case Inode(inode) =>
      inode.toLong
    }

  private val Inode = raw"socket:\[(\d+)\]".r

  private def flagsOf(info: Path): Int =
    lines(info).collectFirst { case Flags(octal) => Integer.parseInt(octal, 8) }.getOrElse(0)

  private val Flags = raw"flags:\s+(\d+)".r

  private def lines(file: Path): Seq[String] =
    Try(Files.readAllLines(file).asScala.toSeq).getOrElse(Nil)

  private def entries(folder: Path): Seq[Path] =
    Try(Using.resource(Files.list(folder))(_.iterator.asScala.toVector)).getOrElse(Nil)
}
