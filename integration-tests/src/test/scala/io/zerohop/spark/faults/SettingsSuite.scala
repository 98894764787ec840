package io.zerohop.spark.faults

import java.net.{StandardProtocolFamily, UnixDomainSocketAddress}
import java.nio.channels.ServerSocketChannel
import java.nio.file.{Files, Path, Paths}

import io.zerohop.spark.support.RunBy
import org.apache.commons.io.FileUtils

/** The same answer with Spark's encryption, serializers and compression, and Zerohop's own keys. */
@RunBy.Faults
class SettingsSuite extends AnswerOnClusters {

  test("I/O encryption, in place and staged") {
    val encrypted = "spark.io.encryption.enabled" -> "true"
    val inPlace = runWith(encrypted)
    onZerohop(assert(inPlace.bytes("peer") > 0))
    val staged = runWith(
      encrypted,
      "spark.zerohop.pool.size" -> "2m",
      "spark.zerohop.segment.size" -> "1m",
      "spark.zerohop.paths" -> "local,staged")
    onZerohop(assert(staged.bytes("staged") > 0))
  }

  test("authentication and network encryption") {
    val bytes = runWith(
      "spark.authenticate" -> "true",
      "spark.authenticate.secret" -> "a secret of this test",
      "spark.network.crypto.enabled" -> "true")
    onZerohop(assert(bytes.bytes("peer") > 0))
  }

  test("without compression and with Kryo, in place and staged") {
    val plain = Seq(
      "spark.shuffle.compress" -> "false",
      "spark.shuffle.spill.compress" -> "false",
      "spark.serializer" -> "org.apache.spark.serializer.KryoSerializer")
    val inPlace = runWith(plain: _*)
    onZerohop(assert(inPlace.bytes("peer") > 0))
    val staged = runWith(plain :+ ("spark.zerohop.paths" -> "staged"): _*)
    onZerohop(assert(staged.bytes("staged") > 0))
  }

  test("without checksums of blocks") {
    val bytes = runWith("spark.zerohop.checksum.enabled" -> "false")
    onZerohop(assert(bytes.bytes("peer") > 0))
  }

  test("a write buffer far smaller than a map output: many batches") {
    val bytes = runWith("spark.zerohop.write.buffer" -> "64k")
    onZerohop(assert(bytes.bytes("peer") > 0))
  }

  test("stale sockets and strange files in the socket folder") {
    val folder = Files.createTempDirectory(Paths.get("/tmp"), "zh")
    try {
      leaveStaleSocket(folder.resolve("stale.sock"))
      Files.writeString(folder.resolve("not-a-socket"), "left by somebody else")
      val bytes = runWith("spark.zerohop.socket.dir" -> folder.toString)
      onZerohop(assert(bytes.bytes("peer") > 0))
    } finally FileUtils.deleteDirectory(folder.toFile)
  }

  /** A socket file that nobody listens on, as SIGKILL leaves it. */
  private def leaveStaleSocket(path: Path): Unit = {
    val server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)
    try server.bind(UnixDomainSocketAddress.of(path))
    finally server.close()
    assert(Files.exists(path))
  }
}
