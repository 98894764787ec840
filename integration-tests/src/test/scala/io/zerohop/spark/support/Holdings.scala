package io.zerohop.spark.support

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/** What a process of ours holds of Zerohop's, as `/proc` shows it; nothing if it is gone. */
final class Holdings(pid: Long) {
  import Holdings._

  /** Inodes of its own segments: who maps another's keeps no descriptor of it. */
  def owned: Set[String] = ExecutorMemory.memfds(pid).flatMap { link =>
    Try(Files.getAttribute(link, "unix:ino").toString).toOption
  }.toSet

  /** Inodes of all segments that it has mapped or holds open. */
  def held: Set[String] = mapped ++ owned

  /** How many Unix-domain sockets it has open. */
  def sockets: Int = {
    val unix = unixSockets
    links(file("fd")).count(link => unix.contains(link))
  }

  def threads: Int = entries(file("task")).count { task =>
    Try(Files.readString(task.resolve("comm"))).toOption.exists(_.startsWith("zerohop-"))
  }

  private def mapped: Set[String] =
    lines(file("maps")).map(_.split(" +", 6)).collect {
      case Array(_, _, _, _, inode, name) if name.startsWith("/memfd:zerohop") => inode
    }.toSet

  private def file(name: String): Path = Paths.get("/proc", pid.toString, name)

  /** Of its network namespace. */
  private def unixSockets: Set[String] =
    lines(file("net/unix")).drop(1).map(line => s"socket:[${line.trim.split(" +")(6)}]").toSet
}

object Holdings {
  private def lines(file: Path): Seq[String] =
    Try(Files.readAllLines(file).asScala.toSeq).getOrElse(Nil)

  private def links(folder: Path): Seq[String] =
    entries(folder).flatMap(link => Try(Files.readSymbolicLink(link).toString).toOption)

  private def entries(folder: Path): Seq[Path] =
    Try(Using.resource(Files.list(folder))(_.iterator.asScala.toVector)).getOrElse(Nil)
}
