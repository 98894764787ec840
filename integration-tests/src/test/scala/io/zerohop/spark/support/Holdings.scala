package io.zerohop.spark.support

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/** What a process of ours holds of Zerohop's, as `/proc` shows it; nothing if it is gone. */
final class Holdings(val pid: Long) {
  import Holdings._

  /** Inodes of its own segments: who maps another's keeps no descriptor of it. */
  def owned: Set[String] = ExecutorMemory.memfds(pid).flatMap { link =>
    Try(Files.getAttribute(link, "unix:ino").toString).toOption
  }.toSet

  /** Inodes of all segments that it has mapped or holds open. */
  def held: Set[String] = mapped ++ owned

  /** Its Unix-domain sockets, also those that are not Zerohop's. */
  def sockets: Seq[UnixSocket] = UnixSocket.of(pid)

  /** Names of its threads that are Zerohop's, as far as the kernel keeps them. */
  def threads: Seq[String] = entries(file("task")).flatMap { task =>
    Try(Files.readString(task.resolve("comm")).trim).toOption.filter(_.startsWith("zerohop-"))
  }

  private def mapped: Set[String] =
    lines(file("maps")).map(_.split(" +", 6)).collect {
      case Array(_, _, _, _, inode, name) if name.startsWith("/memfd:zerohop") => inode
    }.toSet

  private def file(name: String): Path = Paths.get("/proc", pid.toString, name)
}

object Holdings {
  private def lines(file: Path): Seq[String] =
    Try(Files.readAllLines(file).asScala.toSeq).getOrElse(Nil)

  private def entries(folder: Path): Seq[Path] =
    Try(Using.resource(Files.list(folder))(_.iterator.asScala.toVector)).getOrElse(Nil)
}
