package io.zerohop.spark.nodes

import java.io.IOException
import java.net.{InetSocketAddress, Socket}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.Random
import java.util.function.Consumer
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import scala.jdk.CollectionConverters._
import scala.util.Using

import io.zerohop.device.exchange.ExchangeException
import io.zerohop.shuffle.transport.ControlChannel.ControlService
import org.apache.spark.SparkConf
import org.apache.spark.network.TransportContext
import org.apache.spark.network.netty.SparkTransportConf
import org.apache.spark.network.server.NoOpRpcHandler
import org.apache.spark.zerohop.SparkInternals

/**
 * A program that connects to a port of an executor and does not belong to its application.
 *
 * Its arguments are host, port and what it does: [[Stranger.Garbage]], or [[Stranger.Secret]] with
 * what it takes for the application's secret or nothing, after which it prints whether it was let
 * in.
 */
object Stranger {
  val Garbage = "garbage"
  val Secret = "secret"
  val Admitted = "admitted"
  val Refused = "refused"

  private val Limit = 5000
  private val LengthBytes = 8
  private val Crowd = 500

  def main(args: Array[String]): Unit = args.toSeq match {
    case Seq(host, port, Secret) => println(askAtOnce(host, port.toInt))
    case Seq(host, port, Secret, secret) => println(introduce(host, port.toInt, secret))
    case Seq(host, port, Garbage) =>
      harms(host, port.toInt).map { harm =>
        val thread = new Thread(() => harm())
        thread.start()
        thread
      }.foreach(_.join())
  }

  private def harms(host: String, port: Int): Seq[() => Unit] = Seq(
    random(1 << 20),
    frame(1000, random(500)), // Half of it.
    Array[Byte](0, 0, 0), // Not even a length.
    frame(Long.MaxValue, random(1 << 20)),
    frame(Int.MaxValue - 1, random(8 << 20)),
    frame(-1, random(100)),
    frame(0, random(100)),
    frame(LengthBytes + 100, random(100)) // All of it, and nonsense.
  ).map(bytes => () => send(host, port, bytes)) :+ (() => crowd(host, port))

  /** As executors do, who derive a key from Spark's secret. */
  private def introduce(host: String, port: Int, secret: String): String = {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"))
    val key = mac.doFinal("zerohop segment exchange".getBytes(UTF_8))
    val own = SparkInternals.controlChannel(key, Silent, Duration.ofMillis(Limit))
    try {
      own.connect(host, port, Duration.ofMillis(Limit)).close()
      Admitted
    } catch { case e: ExchangeException => s"$Refused: ${e.reason} ${e.getMessage}" }
    finally own.close()
  }

  /** Nobody asks a stranger. */
  private object Silent extends ControlService {
    override def asked(link: Long, question: ByteBuffer, answer: Consumer[ByteBuffer]): Unit = ()
    override def disconnected(link: Long): Unit = ()
  }

  /** Without any proof: fails with the first thing that is asked. */
  private def askAtOnce(host: String, port: Int): String =
    Using.resource(new TransportContext(transportConf, new NoOpRpcHandler)) { context =>
      Using.resource(context.createClientFactory(Nil.asJava)) { clients =>
        try {
          clients.createClient(host, port).sendRpcSync(ByteBuffer.wrap(random(100)), Limit)
          Admitted
        } catch {
          case e @ (_: IOException | _: RuntimeException) =>
            s"$Refused: ${e.toString.linesIterator.next()}"
        }
      }
    }

  private def transportConf = SparkTransportConf.fromSparkConf(new SparkConf, "stranger", 1)

  /** Sends all of it and stays a while, unless the other side ends it before. */
  private def send(host: String, port: Int, bytes: Array[Byte]): Unit =
    Using.resource(connect(host, port)) { socket =>
      try {
        socket.getOutputStream.write(bytes)
        while (socket.getInputStream.read() >= 0) {}
      } catch { case _: IOException => } // Refused in the middle, or nothing is said for a while.
    }

  private def crowd(host: String, port: Int): Unit = {
    val sockets = (1 to Crowd).map { _ =>
      val socket = connect(host, port)
      try socket.getOutputStream.write(frame(1000, random(10)))
      catch { case _: IOException => }
      socket
    }
    Thread.sleep(1000)
    sockets.foreach(_.close())
  }

  private def connect(host: String, port: Int): Socket = {
    val socket = new Socket
    socket.setSoTimeout(2000)
    socket.connect(new InetSocketAddress(host, port), Limit)
    socket
  }

  /** As Spark's transport has them: the length of the whole in 8 bytes, then the rest. */
  private def frame(length: Long, rest: Array[Byte]): Array[Byte] =
    ByteBuffer.allocate(LengthBytes + rest.length).putLong(length).put(rest).array

  private def random(length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    new Random(length).nextBytes(bytes)
    bytes
  }
}
