package io.zerohop.spark.faults

import java.util.concurrent.{BrokenBarrierException, CyclicBarrier, TimeUnit, TimeoutException}

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Cluster, RunBy}
import org.apache.spark.{HashPartitioner, SparkContext, TaskContext}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Two tasks of each executor read the same blocks of others at the same time. */
@RunBy.Faults
class SharedReadSuite extends AnyFunSuite with BeforeAndAfterAll {
  import SharedReadSuite._

  private var running: Option[(Map[String, String], Cluster)] = None

  test("compressed") {
    check()()
  }

  test("as they are, in Netty's buffers") {
    check("spark.shuffle.compress" -> "false")()
  }

  test("one of the two fails in the middle of what both read") {
    check("spark.shuffle.compress" -> "false")(failing = true)
  }

  test("encrypted, and over encrypted connections") {
    check(
      "spark.io.encryption.enabled" -> "true",
      "spark.authenticate" -> "true",
      "spark.authenticate.secret" -> "a secret of this test",
      "spark.network.crypto.enabled" -> "true")()
  }

  test("blocks so large that they are received in files") {
    check("spark.network.maxRemoteBlockSizeFetchToMem" -> "200k")()
  }

  test("sent by their owner") {
    check()(path = Sent)
  }

  test("sent, and one of the two fails in the middle of what both read") {
    check()(failing = true, path = Sent)
  }

  private def check(
      settings: (String, String)*)(failing: Boolean = false, path: String = Staged): Unit = {
    val cluster = clusterOf(settings.toMap + ("spark.zerohop.paths" -> s"local,$path"))
    val before = sharedBlocks(cluster)
    for (run <- 1 to Runs) {
      val (answer, bytes) =
        cluster.counted(s"shared reads, run $run")(readTogether(cluster.sc, failing))
      assert(answer === Map.from((0 until Readers).map(_ -> expected)))
      assert(failing === (bytes.failedTasks > 0))
      if (ManagerUnderTest.isZerohop) assert(bytes.bytes(path) > 0)
    }
    if (ManagerUnderTest.isZerohop) {
      val shared = sharedBlocks(cluster) - before
      info(s"$shared blocks were shared in $Runs runs")
      assert(shared > 0)
      cluster.assertNothingHeld()
    }
  }

  /** Of all executors together. */
  private def sharedBlocks(cluster: Cluster): Long =
    if (ManagerUnderTest.isZerohop) Seq(Staged, "remote").map(sharedBlocks(cluster, _)).sum
    else 0

  private def sharedBlocks(cluster: Cluster, kind: String): Long =
    cluster.gauges(s"$kind.shared.blocks").values.sum

  /** That of the test before, if it has the same settings. */
  private def clusterOf(settings: Map[String, String]): Cluster = {
    if (!running.exists(_._1 == settings)) {
      close()
      running = Some(settings -> new Cluster(2, settings, Some("local-cluster[2,2,1024]")))
    }
    running.get._2
  }

  private def close(): Unit = {
    running.foreach(_._2.close())
    running = None
  }

  override protected def afterAll(): Unit =
    try close()
    finally super.afterAll()
}

private object SharedReadSuite {
  private val Staged = "staged"
  private val Sent = "sent"
  private val Runs = 3
  private val Readers = 4
  private val Maps = 8
  private val RecordsPerMap = 60
  private val RecordBytes = 20000
  private val barrier = new CyclicBarrier(2)

  /** Records and what their bytes add up to. */
  private val expected: (Int, Long) =
    (Maps * RecordsPerMap, (0 until Maps * RecordsPerMap).map(id => sum(record(id))).sum)

  /** What each of the readers sees of the one partition of a shuffle. */
  private def readTogether(sc: SparkContext, failing: Boolean): Map[Int, (Int, Long)] = {
    val shuffled = sc
      .parallelize(0 until Maps * RecordsPerMap, Maps)
      .map(id => (id, record(id)))
      .partitionBy(new HashPartitioner(1))
    val readers = sc.parallelize(0 until Readers, Readers).mapPartitions { reader =>
      // Those that run again would wait for nobody.
      if (TaskContext.get().attemptNumber() == 0) meet()
      reader
    }
    readers
      .cartesian(shuffled)
      .mapPartitions { pairs =>
        var reader = -1
        var records = 0
        var sums = 0L
        pairs.foreach { case (by, (_, bytes)) =>
          reader = by
          records += 1
          sums += sum(bytes)
          val context = TaskContext.get()
          if (failing && by < Readers / 2 && records == 50 && context.attemptNumber() == 0) {
            throw new IllegalStateException("wanted by the test")
          }
        }
        Iterator(reader -> ((records, sums)))
      }
      .collect()
      .toMap
  }

  /** Waits for the other task of this executor, if there is one, and not for long. */
  private def meet(): Unit =
    try barrier.await(10, TimeUnit.SECONDS): Unit
    catch { case _: TimeoutException | _: BrokenBarrierException => barrier.reset() }

  /** Half of it looks random, so that it can be compressed, but not to nothing. */
  private def record(id: Int): Array[Byte] = {
    val bytes = new Array[Byte](RecordBytes)
    val random = new Array[Byte](RecordBytes / 2)
    new scala.util.Random(id).nextBytes(random)
    random.copyToArray(bytes)
    bytes
  }

  private def sum(bytes: Array[Byte]): Long = bytes.foldLeft(7L)((sum, b) => sum * 31 + b)
}
