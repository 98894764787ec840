package io.zerohop.spark.gpu

import java.time.Duration
import java.util.Collections
import java.util.concurrent.ConcurrentHashMap
import java.util.function.BooleanSupplier

import scala.util.Using

import io.zerohop.shuffle.ShuffleNode
import io.zerohop.shuffle.block.{Block, BlockSource, Link, ReadSide}
import io.zerohop.shuffle.fetch.{FetchedBlock, Fetches}
import io.zerohop.shuffle.transport.Transport.FallbackTransport
import io.zerohop.spark.{MemoryShuffleManager, ZerohopShuffleManager}
import org.apache.spark.SparkEnv
import org.apache.spark.unsafe.Platform

/** Flips bytes of this executor's own blocks where they lie, as a GPU with a fault would. */
object GpuDamage {
  private val Limit = Duration.ofSeconds(20)
  private val done = ConcurrentHashMap.newKeySet[Int]()

  /** In a Kudo block's header, where the number of rows is; of packed tables, among values. */
  private val At = 9

  /**
   * Does so once for each shuffle, however often it is asked.
   *
   * @param mapIds of map outputs that this executor holds
   * @return whether it was done
   */
  def flip(shuffleId: Int, mapIds: Seq[Long]): Boolean = synchronized {
    if (!done.contains(shuffleId) && flipped(node, shuffleId, mapIds) > 0) done.add(shuffleId)
    done.contains(shuffleId)
  }

  private def flipped(node: ShuffleNode, shuffleId: Int, mapIds: Seq[Long]): Int = {
    val blocks = new java.util.ArrayList[Block]()
    for (mapId <- mapIds) blocks.add(new Block(shuffleId, mapId, 0, 0, 1))
    val source = new BlockSource(SparkEnv.get.executorId, node.location, "", blocks)
    val side = if (node.hasGpu) ReadSide.DEVICE else ReadSide.HOST
    val never: BooleanSupplier = () => false
    val nothing: FallbackTransport = (_, _, _) => throw new IllegalStateException("not in memory")
    val fetcher =
      node.fetches.begin(Collections.singletonList(source), nothing, quiet, side, never)
    var count = 0
    try {
      while (fetcher.next()) {
        flip(node, fetcher.block)
        count += 1
      }
    } finally fetcher.close()
    count
  }

  /** Of a fetch of which nobody wants to hear. */
  private[gpu] def quiet: Fetches.Listener = new Fetches.Listener {}

  private def flip(node: ShuffleNode, block: FetchedBlock): Unit = {
    if (block.ready != null) block.awaitReady()
    // Packed tables have a header in host memory first.
    val extent =
      if (node.hasGpu) (0 until block.extentCount).indexWhere(block.extentOnDevice) else 0
    require(extent >= 0, s"$block does not lie on the GPU")
    val address = block.extentAddress(extent) + At
    if (block.extentOnDevice(extent))
      Using.resources(node.gpuHostBuffer(8), node.gpuStream()) { (byte, stream) =>
        def move(from: Long, to: Long): Unit = {
          val batch = stream.newBatch()
          batch.add(from, to, 1)
          stream.submit(batch)
          stream.synchronize(Limit)
        }
        move(address, byte.address)
        flipByte(byte.address)
        move(byte.address, address)
      }
    else flipByte(address)
  }

  private def flipByte(address: Long): Unit =
    Platform.putByte(null, address, (Platform.getByte(null, address) ^ 0x10).toByte)

  /** The manager shows it to nobody. */
  private def node: ShuffleNode = {
    val field = classOf[ZerohopShuffleManager].getDeclaredField("manager")
    field.setAccessible(true)
    val method = classOf[MemoryShuffleManager].getDeclaredMethod("node")
    method.setAccessible(true)
    method.invoke(field.get(SparkEnv.get.shuffleManager)).asInstanceOf[ShuffleNode]
  }
}
