package io.zerohop.spark.support

import java.net.{InetAddress, ServerSocket}
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.{Random, Try, Using}

import org.scalatest.Assertions._

/** What tests need of the machine that they run on. */
object Local {

  /** Below those that Linux gives to connections, and to who listens at any port. */
  private val Ports = 20000 until 32000

  /** A port on the loopback. Only who chooses his port himself may take it until it is used. */
  def freePort(): Int = {
    val first = Random.nextInt(Ports.size)
    Ports.indices.iterator.map(i => Ports((first + i) % Ports.size)).find(isFree)
      .getOrElse(fail(s"all ports are taken of $Ports"))
  }

  private def isFree(port: Int): Boolean =
    Try(new ServerSocket(port, 1, InetAddress.getLoopbackAddress).close()).isSuccess

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
