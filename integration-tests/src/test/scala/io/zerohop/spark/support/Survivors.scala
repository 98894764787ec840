package io.zerohop.spark.support

import java.nio.file.{Files, Path, Paths}
import java.nio.file.attribute.BasicFileAttributes

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.spark.SparkContext

/** What the executors that live hold of those that were killed. */
final class Survivors(sc: SparkContext, pids: => Iterable[Long]) {
  import Survivors._

  // A keeper is one more peer of each executor, with a socket of its own.
  private val keepers = if (sc.getConf.getBoolean("spark.zerohop.keeper", false)) 1 else 0

  /** Waits until no survivor holds memory, a descriptor, a thread or a socket of the dead. */
  def assertNothingOfTheDead(): Unit = {
    var seen = Seen.of(Nil, Nil, keepers)
    Leftover.unless(s"nothing of dead executors, but ${seen.describe}") {
      seen = Seen.of(pids.map(new Holdings(_)).toSeq, socketFiles, keepers)
      seen.isClean
    }
  }

  private def socketFiles: Seq[Path] = {
    val bases = sc.getConf.getOption("spark.zerohop.socket.dir").filter(_ != "auto")
      .map(dir => Seq(Paths.get(dir))).getOrElse(found)
    bases.flatMap(base =>
      Try(Using.resource(Files.walk(base.resolve(sc.applicationId))) {
        _.iterator.asScala.filter { path =>
          Try(Files.readAttributes(path, classOf[BasicFileAttributes])).toOption.exists(_.isOther)
        }.toVector
      }).getOrElse(Vector.empty))
  }
}

object Survivors {

  /** The one that others connect to. */
  private val SocketsAlone = 1

  /** To its server, and from it. */
  private val SocketsPerPeer = 2

  // Four of the node itself, and one that follows copies of a GPU; those of path `sent`: two that
  // answer, one that asks the driver for neighbours, and by processors those that send and take.
  private val ThreadsAlone =
    8 + 2 * math.max(2, math.min(4, Runtime.getRuntime.availableProcessors / 4))
  private val ThreadsPerPeer = 2

  /** What was found at one time, all of living executors. */
  private final case class Seen(
      executors: Seq[Held],
      strange: Set[String],
      files: Seq[Path],
      keepers: Int) {
    def isClean: Boolean = {
      val peers = executors.size - 1 + keepers
      strange.isEmpty && files.size <= executors.size + keepers &&
      executors.forall { executor =>
        executor.sockets.count(_.isOurs) <= SocketsAlone + peers * SocketsPerPeer &&
        executor.threads.size <= ThreadsAlone + (1 + peers) * ThreadsPerPeer
      }
    }

    def describe: String = {
      val ends = UnixSocket.otherEnds
      val each = executors.map { executor =>
        s"${HostProcess.of(executor.pid).fold(s"process ${executor.pid} is gone")(_.describe)}\n" +
          executor.sockets.sortBy(_.descriptor).map(s => s"  ${s.describe(ends)}\n").mkString +
          s"  threads: ${executor.threads.sorted.mkString(" ")}"
      }
      s"${strange.size} segments without an owner, " +
        s"sockets ${executors.map(_.sockets.count(_.isOurs))}, " +
        s"threads ${executors.map(_.threads.size)}, " +
        s"${files.size} socket files of ${executors.size} executors\n${each.mkString("\n")}\n" +
        s"socket files: ${files.mkString(" ")}"
    }
  }

  private object Seen {
    def of(living: Seq[Holdings], files: Seq[Path], keepers: Int): Seen = Seen(
      living.map(executor => Held(executor.pid, executor.sockets, executor.threads)),
      living.flatMap(_.held).toSet -- living.flatMap(_.owned),
      files,
      keepers)
  }

  private final case class Held(pid: Long, sockets: Seq[UnixSocket], threads: Seq[String])

  /** The folders of this user's applications; the names end with what only those know. */
  private def found: Seq[Path] =
    Using.resource(Files.newDirectoryStream(Paths.get("/tmp"), s"zerohop-$user-*"))(
      _.asScala.toVector)

  private def user: String = Files.getAttribute(Paths.get("/proc/self"), "unix:uid").toString
}
