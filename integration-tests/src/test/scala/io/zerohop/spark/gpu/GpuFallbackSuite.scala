package io.zerohop.spark.gpu

import java.nio.file.Files
import java.nio.file.attribute.{PosixFilePermission, PosixFilePermissions}

import io.zerohop.spark.support.{Facts, JarCopy, RunBy}

/** Executors that cannot hold blocks on their GPU: plans stay, and tables go through the host. */
@RunBy.Gpu
class GpuFallbackSuite extends GpuSuite {
  import GpuFallbackSuite._

  private val folder = Files.createTempDirectory("zerohop-fallback")
  private var chosen = Map.empty[String, String]

  override protected def settings: Map[String, String] = chosen

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally open("rwx------")

  test("no kernels on the executors: tables in shared host memory") {
    needsRapids()
    val jar = JarCopy.of(GpuHost.installation.zerohopJar.toFile, drops = Kernels)
    chosen = Map("spark.executor.extraClassPath" -> GpuHost.classPath(jar))
    try queries { facts =>
        assert(facts.number("direct_bytes") > 0, facts)
        assert(facts.number("staged_bytes") === 0, facts)
      }
    finally Files.delete(jar)
  }

  test("a socket folder that is refused: tables in files") {
    chosen = inFolder
    open("rwxrwxrwx")
    queries { facts =>
      // Spark's own reader, which rows have there, counts nothing of ours.
      if (!GpuHost.isSmoke) assert(facts.number("staged_bytes") > 0, facts)
      assert(facts.number("direct_bytes") === 0, facts)
    }
  }

  test("one of two executors is such a one") {
    chosen = inFolder
    open("rwx------")
    assertEqual(ask("group_by"))
    // What takes the place of the executor that is killed finds the folder open to others.
    open("rwxrwxrwx")
    val lost = ask("killed_in_write")
    assert(lost.flag("happened"), lost)
    assert(lost.flag("equal"), lost)
    queries { facts =>
      assert(facts.number("direct_bytes") > 0, facts)
      if (!GpuHost.isSmoke) assert(facts.number("staged_bytes") > 0, facts)
    }
  }

  private def inFolder = Map("spark.zerohop.socket.dir" -> folder.toString)

  private def open(mode: String): Unit = {
    val permissions: java.util.Set[PosixFilePermission] = PosixFilePermissions.fromString(mode)
    Files.setPosixFilePermissions(folder, permissions)
    ()
  }

  private def queries(check: Facts => Unit): Unit =
    try Seq("group_by", "join", "round_robin").foreach { query =>
        val facts = ask(query)
        assertEqual(facts)
        assertOnGpu(facts)
        check(facts)
      }
    finally stop()
}

private object GpuFallbackSuite {
  val Kernels = "io/zerohop/device/lib/zerohop.fatbin"
}
