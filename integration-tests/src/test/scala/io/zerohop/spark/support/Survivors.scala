package io.zerohop.spark.support

import java.nio.file.{Files, Path, Paths}
import java.nio.file.attribute.BasicFileAttributes

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.spark.SparkContext

/** What the executors that live hold of those that were killed. */
final class Survivors(sc: SparkContext, pids: => Iterable[Long]) {
  import Survivors._

  /** Waits until no survivor holds memory, a descriptor, a thread or a socket of the dead. */
  def assertNothingOfTheDead(): Unit = {
    var seen = ""
    Leftover.unless(s"nothing of dead executors, but $seen") {
      val living = pids.map(new Holdings(_)).toSeq
      val strange = living.flatMap(_.held).toSet -- living.flatMap(_.owned)
      val sockets = living.map(_.sockets)
      val threads = living.map(_.threads)
      val files = socketFiles
      seen = s"${strange.size} segments without an owner, sockets $sockets, threads $threads, " +
        s"${files.size} socket files of ${living.size} executors"
      strange.isEmpty && files.size <= living.size &&
      sockets.forall(_ <= SocketsAlone + living.size * SocketsPerPeer) &&
      threads.forall(_ <= ThreadsAlone + living.size * ThreadsPerPeer)
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
  private val SocketsAlone = 1
  private val SocketsPerPeer = 2

  // Four of the node itself, and one that follows copies of a GPU; those of path `sent`: two that
  // answer, one that asks the driver for neighbours, and by processors those that send and take.
  private val ThreadsAlone =
    8 + 2 * math.max(2, math.min(4, Runtime.getRuntime.availableProcessors / 4))
  private val ThreadsPerPeer = 2

  /** The folders of this user's applications; the names end with what only those know. */
  private def found: Seq[Path] =
    Using.resource(Files.newDirectoryStream(Paths.get("/tmp"), s"zerohop-$user-*"))(
      _.asScala.toVector)

  private def user: String = Files.getAttribute(Paths.get("/proc/self"), "unix:uid").toString
}
