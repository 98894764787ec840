package io.zerohop.spark.gpu

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Path
import java.time.Duration

import io.zerohop.device.cuda.CudaDevice
import io.zerohop.shuffle.ShuffleNode
import io.zerohop.shuffle.conf.Config
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer
import io.zerohop.shuffle.write.MapOutput.PackSource
import io.zerohop.shuffle.pool.Tier
import org.apache.spark.unsafe.Platform

/**
 * A process with a node whose GPU holds the copies of a map output that is published. It says where
 * it is and how many outputs wait; told to, it lets the GPU go on, and says so.
 */
object HeldOwner {
  val Bytes: Int = 1 << 20
  private val Limit = Duration.ofSeconds(60)

  def node(base: Path, executorId: String, device: CudaDevice): ShuffleNode =
    ShuffleNode.start(
      new ShuffleNode.Setup(
        Config.defaults,
        "app-held",
        executorId,
        "a secret of this test alone".getBytes(UTF_8))
        .set("socket.dir", base)
        .set("pool.size", 16L << 20)
        .set("segment.size", 4L << 20)
        .set("device.pool.size", 64L << 20)
        .set("device.segment.size", 32L << 20),
      device)

  /** What a byte of the output is. */
  def expected(at: Int): Byte = (at * 31 + at / 4096).toByte

  def main(arguments: Array[String]): Unit = {
    val device = new CudaDevice(0, CudaDevice.DEFAULT_MULTIPROCESSORS)
    val memory = device.allocate(2L * Bytes)
    val owner = node(Path.of(arguments(0)), "held", device)
    val brake = device.signal(memory, 0)
    fill(owner, memory.address + Bytes)
    // The first output of all pins memory, for which the driver might wait for the GPU.
    write(owner, 1, memory.address + Bytes)
    while (owner.stats.outputs.pendingCommits > 0) Thread.sleep(1)
    owner.gpuStream().await(brake, 1, Limit)
    write(owner, 0, memory.address + Bytes)
    println(s"${owner.location.encode} ${owner.stats.outputs.pendingCommits}")
    if (Console.in.readLine() != null) {
      brake.raise(1)
      println("let go")
      Console.in.readLine()
    }
    sys.exit(0)
  }

  /** In the order of the thread's stream, which may wait, as where others keep the GPU busy. */
  private def write(owner: ShuffleNode, mapId: Long, at: Long): Unit = {
    val writer = owner.newMapOutput(1, mapId, 1, Tier.DEVICE, null)
    try {
      writer.append(new PackSource {
        override def partitions: Int = 1
        override def onDevice: Boolean = true
        override def forEachChunk(partition: Int, consumer: ExtentConsumer): Unit =
          consumer.extent(at, Bytes)
      })
      writer.commit()
      ()
    } finally writer.close()
  }

  private def fill(owner: ShuffleNode, to: Long): Unit = {
    val from = owner.gpuHostBuffer(Bytes.toLong)
    val stream = owner.gpuStream()
    try {
      for (i <- 0 until Bytes) Platform.putByte(null, from.address + i, expected(i))
      val batch = stream.newBatch()
      batch.add(from.address, to, Bytes.toLong)
      stream.submit(batch)
      stream.synchronize(Limit)
    } finally {
      stream.close()
      from.close()
    }
  }
}
