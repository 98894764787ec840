package io.zerohop.spark.faults

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets
import java.nio.file.{Files, Path}
import java.time.Duration
import java.util.{Base64, Properties}
import java.util.concurrent.TimeUnit

import scala.concurrent.duration._
import scala.util.Try

import io.zerohop.spark.compat.JarVersion
import io.zerohop.spark.keeper.DaemonLink
import io.zerohop.spark.support.{Bounded, Cluster, HostProcess, RunBy}
import io.zerohop.spark.versions.SparkHomes
import org.apache.spark.zerohop.SparkInternals

/** A daemon on the node starts the keepers: they are no children of executors, and share a limit. */
@RunBy.Verify
class KeeperDaemonSuite extends KeeperClusterSuite {
  private val Mib = 1L << 20
  private val Limit = Duration.ofSeconds(30)

  private lazy val base: Path = folder.resolve("d")
  private var daemon: Option[Process] = None

  override protected def settings: Map[String, String] = super.settings ++ Map(
    "spark.zerohop.keeper.daemon" -> base.toString,
    "spark.zerohop.keeper.size" -> "700m")

  override protected def starters: Set[Long] = daemon.map(_.pid).toSet

  /** Started by the jar alone, as users do it. */
  private def startDaemon(): Unit = {
    val java = s"${sys.props("java.home")}/bin/java"
    val builder = new ProcessBuilder(java, "-Xmx64m", "-jar", SparkHomes.zerohopJar.toString,
      "keeper", "--folder", base.toString, "--size", "1g", "--keepers", "3")
    builder.redirectErrorStream(true)
    builder.redirectOutput(ProcessBuilder.Redirect.appendTo(folder.resolve("daemon.log").toFile))
    val process = builder.start()
    daemon = Some(process)
    Bounded.until("a daemon", 60.seconds) {
      assert(process.isAlive, Files.readString(folder.resolve("daemon.log")))
      Try(status).isSuccess
    }
  }

  private def status: DaemonLink.Answer = DaemonLink.ask(base, null, Limit)

  override protected def beforeAll(): Unit = {
    startDaemon()
    super.beforeAll()
  }

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally daemon.foreach { process =>
        process.destroy()
        assert(process.waitFor(20, TimeUnit.SECONDS))
        assert(process.exitValue === 143)
        assert(!Files.exists(base.resolve("daemon").resolve("socket")))
      }

  test("no output is computed again of executors that are all killed at once") {
    val shuffled = keptShuffle()
    assert(running.size === 1, Files.readString(folder.resolve("daemon.log")))
    killAll()
    assertReadAsItIs(shuffled)
  }

  test("nor where the daemon is killed, too; the next one counts the keeper and starts others") {
    val shuffled = keptShuffle()
    val keeper = running.head
    Cluster.kill(daemon.get.pid)
    startDaemon()
    assert(status.keepers === 1)
    assert(status.left === 324 * Mib)
    killAll()
    assertReadAsItIs(shuffled)
    assert(keeper.lives)
    Cluster.kill(keeper.pid)
    keptShuffle()
    assert(running.size === 1)
    assert(status.keepers === 1)
  }

  test("two applications at once are limited together") {
    keptShuffle()
    assert(shares === Set(700 * Mib))
    val second = ask(1)
    assert(second.kind === DaemonLink.Kind.STARTED, second)
    Bounded.until("two keepers", 10.seconds)(shares == Set(700 * Mib, 324 * Mib))
    assert(status.left === 0)
    val third = ask(2)
    assert(third.kind === DaemonLink.Kind.FULL, third)
    // It has no executor, and ends.
    Bounded.until("the end of the second keeper", 60.seconds)(status.left == 324 * Mib)
    val log = Files.readString(folder.resolve("daemon.log"))
    assert(!log.contains("Exception"), log)
  }

  private def killAll(): Unit = {
    val before = SparkInternals.executorIds(cluster.sc).toSet
    Cluster.kill(cluster.pids.values.toSeq: _*)
    Bounded.until("loss of all executors", 60.seconds) {
      SparkInternals.executorIds(cluster.sc).toSet.intersect(before).isEmpty
    }
    cluster.awaitExecutors()
  }

  /** Of the keepers; not of one that is just becoming a JVM, whose command is empty. */
  private def shares: Set[Long] = running.flatMap { keeper =>
    HostProcess.words(keeper.pid).find(_.startsWith("share-")).map(_.split('-')(1).toLong)
  }

  /** Asks as an executor of another application does. */
  private def ask(application: Byte): DaemonLink.Answer = {
    val secret = Array.fill[Byte](32)(application)
    val orders = new Properties
    orders.setProperty("spark.app.id", s"other-$application")
    orders.setProperty("spark.zerohop.socket.dir", folder.resolve("s").toString)
    orders.setProperty("host", "localhost")
    orders.setProperty("port", "0")
    orders.setProperty("release", JarVersion.own)
    orders.setProperty("secret", Base64.getEncoder.encodeToString(secret))
    val out = new ByteArrayOutputStream
    orders.store(out, null)
    out.write("whole=\n".getBytes(StandardCharsets.ISO_8859_1))
    DaemonLink.ask(
      base,
      new DaemonLink.Start(700 * Mib, -1, secret, classPath, out.toByteArray),
      Limit)
  }

  private def classPath: String = sys.props("java.class.path").split(':').map(Path.of(_))
    .filter(Files.exists(_)).map(_.toRealPath().toString).mkString(":")
}
