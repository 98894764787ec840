package io.zerohop.spark.gpu

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.time.Duration
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import io.zerohop.device.WaitException
import io.zerohop.device.cuda.{CudaDevice, CudaDriver}
import io.zerohop.shuffle.ShuffleNode
import io.zerohop.shuffle.block.{Block, Location}
import io.zerohop.shuffle.block.{BlockSource, ReadSide}
import io.zerohop.shuffle.fetch.{BlockFetchException, Fetch}
import io.zerohop.spark.support.RunBy
import org.apache.spark.unsafe.Platform
import org.scalatest.{Canceled, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/**
 * What a reader's GPU does between the publishing of a map output and the end of its copies, which
 * the owner's GPU holds for as long as the tests want.
 */
@RunBy.Gpu
class GpuReadinessSuite extends AnyFunSuite {
  private val Limit = Duration.ofSeconds(30)

  override protected def withFixture(test: NoArgTest): Outcome =
    GpuHost.missing match {
      case Some(reason) => Canceled(reason)
      case None if GpuHost.isSmoke => Canceled("a smoke run has no GPU")
      case None => super.withFixture(test)
    }

  test("a reader's GPU waits until the owner's has raised the word") {
    withOwner { (owner, reader, source) =>
      withBlock(reader, source) { fetcher =>
        val block = fetcher.block()
        assert(block.ready() != null)
        val received = reader.gpuHostBuffer(HeldOwner.Bytes.toLong)
        val stream = reader.gpuStream()
        try {
          stream.await(block.ready().signal(), block.ready().epoch(), Limit)
          val batch = stream.newBatch()
          batch.add(block.extentAddress(0), received.address, HeldOwner.Bytes.toLong)
          stream.submit(batch)
          Thread.sleep(200)
          assert(!block.ready().signal().reached(block.ready().epoch()))
          assert(Platform.getByte(null, received.address + 1) === 0, "nothing was copied")
          assert(owner.ask("go") === "let go")
          block.awaitReady()
          stream.synchronize(Limit)
          for (i <- 0 until HeldOwner.Bytes)
            assert(Platform.getByte(null, received.address + i) === HeldOwner.expected(i), i)
          fetcher.checkIntact()
        } finally {
          stream.close()
          received.close()
        }
      }
      withBlock(reader, source)(fetcher => assert(fetcher.block().ready() === null))
    }
  }

  test(
    "an owner that is killed before its copies have ended is a fetch failure, and no wait goes on") {
    withOwner { (owner, reader, source) =>
      withBlock(reader, source) { fetcher =>
        val block = fetcher.block()
        val stream = reader.gpuStream()
        try {
          stream.await(block.ready().signal(), block.ready().epoch(), Limit)
          owner.kill()
          val start = System.nanoTime()
          intercept[BlockFetchException](block.awaitReady())
          stream.close()
          assert(System.nanoTime() - start < Limit.toNanos / 2)
        } finally stream.close()
      }
    }
  }

  test("a reader that gives up ends its GPU's wait") {
    withOwner { (owner, reader, source) =>
      withBlock(reader, source) { fetcher =>
        val block = fetcher.block()
        val stream = reader.gpuStream()
        stream.await(block.ready().signal(), block.ready().epoch(), Duration.ofMillis(50))
        intercept[WaitException](stream.synchronize(Limit))
        stream.close()
        assert(owner.ask("go") === "let go")
        block.awaitReady()
      }
    }
  }

  private def withBlock(
      reader: ShuffleNode,
      source: BlockSource)(body: Fetch => Unit): Unit = {
    val fetcher = reader.fetches.begin(
      java.util.List.of(source),
      (_, blocks, _) => fail(s"staged: $blocks"),
      GpuDamage.quiet,
      ReadSide.DEVICE,
      () => false)
    try {
      assert(fetcher.next())
      body(fetcher)
    } finally fetcher.close()
  }

  private def withOwner(body: (Owner, ShuffleNode, BlockSource) => Unit): Unit = {
    val base = Files.createTempDirectory("zerohop-held")
    val owner = new Owner(base)
    try {
      assert(owner.pending === 1)
      val gpu = math.min(1, CudaDriver.devices() - 1)
      val reader =
        HeldOwner.node(base, "reader", new CudaDevice(gpu, CudaDevice.DEFAULT_MULTIPROCESSORS))
      try {
        val block = new Block(1, 0, 0, 0, HeldOwner.Bytes.toLong)
        body(owner, reader,
          new BlockSource("held", owner.location, "held", java.util.List.of(block)))
      } finally reader.close()
    } finally owner.close()
  }

  /** [[HeldOwner]] in a process of its own. */
  private final class Owner(base: java.nio.file.Path) {
    private val process = new ProcessBuilder(
      Seq(
        s"${sys.props("java.home")}/bin/java",
        "-cp",
        sys.props("java.class.path"),
        "io.zerohop.spark.gpu.HeldOwner",
        base.toString).asJava)
      .redirectError(ProcessBuilder.Redirect.INHERIT)
      .start()
    private val answers = process.inputReader(UTF_8)
    private val commands = process.outputWriter(UTF_8)
    private val first = answers.readLine().split(' ')

    def location: Location = Location.parse(first(0))

    def pending: Int = first(1).toInt

    def ask(what: String): String = {
      commands.append(what).append('\n').flush()
      answers.readLine()
    }

    def kill(): Unit = {
      process.destroyForcibly()
      assert(process.waitFor(30, TimeUnit.SECONDS))
      ()
    }

    def close(): Unit = kill()
  }
}
