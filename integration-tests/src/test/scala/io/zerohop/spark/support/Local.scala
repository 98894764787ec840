package io.zerohop.spark.support

import java.net.{InetAddress, ServerSocket}
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.scalatest.Assertions._

/** What tests need of the machine that they run on. */
object Local {

  /** A port on the loopback. It may be taken until it is used. */
  def freePort(): Int =
    Using.resource(new ServerSocket(0, 1, InetAddress.getLoopbackAddress))(_.getLocalPort)

  /** Fails in CI, and skips with a notice elsewhere, where a command is not installed. */
  def require(commands: String*): Unit = {
    val missing = commands.filterNot(isInstalled)
    if (missing.nonEmpty) {
      val what = s"not installed: ${missing.mkString(", ")}"
      if (sys.env.get("CI").exists(_.equalsIgnoreCase("true"))) fail(what) else cancel(what)
    }
  }

  private def isInstalled(command: String): Boolean =
    sys.env("PATH").split(':').exists(folder => Files.isExecutable(Path.of(folder, command)))

  /** Deletes a folder with all that is in it. */
  def delete(folder: Path): Unit =
    Using.resource(Files.walk(folder)) { files =>
      files.iterator.asScala.toSeq.reverse.foreach { file => Files.deleteIfExists(file); () }
    }
}
