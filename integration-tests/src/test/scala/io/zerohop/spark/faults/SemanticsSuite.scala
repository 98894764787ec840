package io.zerohop.spark.faults

import java.nio.file.Files

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, PathBytes, RunBy}
import org.apache.spark.{
  BarrierTaskContext, HashPartitioner, RangePartitioner, SparkException, TaskContext
}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec, AdaptiveSparkPlanExec, AdaptiveSparkPlanHelper
}
import org.apache.spark.sql.functions.{col, count, lit, sum, when}
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.storage.StorageLevel
import org.apache.spark.zerohop.SparkInternals

/** What Spark may ask of a shuffle, on a cluster of processes. */
@RunBy.Verify
class SemanticsSuite extends ClusterSuite with AdaptiveSparkPlanHelper {
  override protected def settings: Map[String, String] =
    Map("spark.sql.autoBroadcastJoinThreshold" -> "-1")

  test("empty partitions and empty map outputs") {
    val answer = cluster.run("empty partitions") {
      cluster.sc
        .parallelize(0 until 16, 16)
        .filter(_ == 5)
        .map(i => (i, i))
        .partitionBy(new HashPartitioner(64))
        .mapPartitions(records => Iterator(records.size))
        .collect()
    }
    assert(answer.length === 64)
    assert(answer.sum === 1)
    val nothing = cluster.run("nothing at all") {
      cluster.sc.parallelize(Seq.empty[(Int, Int)], 4).groupByKey(8).count()
    }
    assert(nothing === 0)
  }

  test("map-side combine, aggregator and key order") {
    val pairs = cluster.sc.parallelize(0 until 100000, 8).map(i => (i % 1000, i.toLong))
    val sums = cluster.run("reduceByKey")(pairs.reduceByKey(_ + _, 7).collectAsMap())
    assert(sums.size === 1000)
    assert(sums.values.sum === (0L until 100000L).sum)
    val lists = cluster.run("groupByKey")(pairs.groupByKey(7).mapValues(_.size).collect())
    assert(lists.forall(_._2 === 100))
    val sorted = cluster.run("repartitionAndSort") {
      pairs.map(_.swap).map { case (v, k) => (v, k.toString * 50) }.sortByKey(true,
        9).keys.collect()
    }
    assert(sorted.toSeq === (0L until 100000L))
    val partitioner = new RangePartitioner(5, pairs)
    val ordered = cluster.run("repartitionAndSortWithinPartitions") {
      pairs
        .repartitionAndSortWithinPartitions(partitioner)
        .mapPartitions { records =>
          val keys = records.map(_._1).toVector
          Iterator((keys.size, keys == keys.sorted))
        }
        .collect()
    }
    assert(ordered.map(_._1).sum === 100000)
    assert(ordered.forall(_._2))
  }

  test("records of many megabytes beside records of a byte") {
    val sizes = cluster.run("large records") {
      cluster.sc
        .parallelize(0 until 8, 8)
        .flatMap(i => Iterator((i, new Array[Byte](5 << 20)), (i + 100, new Array[Byte](1))))
        .partitionBy(new HashPartitioner(3))
        .map { case (key, bytes) => (key, bytes.length) }
        .collect()
    }
    val expected = (0 until 8).flatMap(i => Seq((i, 5 << 20), (i + 100, 1)))
    assert(sizes.toSet === expected.toSet)
    assert(sizes.length === expected.size)
  }

  test("a shuffle is read twice and partly, and outlives a cached reader") {
    val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
    val cached = shuffled.map(_._2._1).persist(StorageLevel.MEMORY_ONLY)
    val (first, second) = cluster.run("read twice") {
      cached.take(10)
      (cached.count(), Workload.answer(shuffled)((_, _) => ()))
    }
    cached.unpersist(blocking = true)
    assert(first === Workload.Maps * Workload.RecordsPerMap)
    assert(second === Workload.expected)
  }

  test("a map task that fails after half its records is run again") {
    val answer = cluster.run("failed map task") {
      Workload.answer(Workload.shuffled(cluster.sc) { (map, record) =>
        if (map == 3 && record == 3000 && TaskContext.get().attemptNumber() < 2) {
          throw new IllegalStateException("wanted by the test")
        }
      })((_, _) => ())
    }
    assert(answer === Workload.expected)
  }

  test("a job that is cancelled in the middle leaves nothing") {
    val seen = new PathBytes
    SparkInternals.awaitListeners(cluster.sc) // Or it would hear of map tasks before this job.
    cluster.sc.addSparkListener(seen)
    try {
      // Two waves of map tasks and more, of a second at least.
      val future = Workload
        .shuffled(cluster.sc)((_, record) => if (record % 100 == 99) Thread.sleep(20))
        .map(_._1)
        .collectAsync()
      Bounded.until("the first map output", 60.seconds)(seen.finishedMapTasks > 0)
      future.cancel()
      val failure = intercept[SparkException] {
        Bounded("the end of a cancelled job", 60.seconds)(future.get())
      }
      val causes = Iterator.iterate[Throwable](failure)(_.getCause).takeWhile(_ != null)
      assert(causes.flatMap(cause => Option(cause.getMessage)).exists(_.contains("cancelled")))
      assert(seen.finishedMapTasks < Workload.Maps)
    } finally cluster.sc.removeSparkListener(seen)
    cluster.run("job after a cancelled one")(cluster.sc.parallelize(1 to 10).count())
    nothingHeld()
  }

  test("adaptive execution coalesces partitions") {
    val plan = adaptive("coalesce") {
      cluster.spark.range(0, 10000, 1, 8).groupBy((col("id") % 50).as("k")).agg(sum("id"))
    }(rows => assert(rows === 50))
    assert(reads(plan).exists(_.hasCoalescedPartition))
  }

  test("adaptive execution splits a skewed join by map range") {
    val spark = cluster.spark
    val settings = Map(
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "100KB",
      "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "100KB")
    val plan = withConf(settings) {
      adaptive("skew") {
        val left = spark.range(0, 200000, 1, 8)
          .select(when(col("id") < 180000, lit(7L)).otherwise(col("id") % 40).as("k"), col("id"))
        val right = spark.range(0, 40, 1, 4).select(col("id").as("r"), (col("id") * 3).as("x"))
        left.hint("merge").join(right, col("k") === col("r"))
      }(rows => assert(rows === 200000))
    }
    assert(reads(plan).exists(_.hasSkewedPartition))
  }

  test("adaptive execution reads locally where a join became a broadcast") {
    val spark = cluster.spark
    val plan = withConf(Map("spark.sql.adaptive.autoBroadcastJoinThreshold" -> "10MB")) {
      adaptive("local reads") {
        val left = spark.range(0, 100000, 1, 8).select((col("id") % 1000).as("k"), col("id"))
        val right = spark.range(0, 100000, 1, 8).where(col("id") < 100).select(col("id").as("r"))
        left.join(right.groupBy("r").agg(count("*").as("n")), col("k") === col("r"))
      }(rows => assert(rows === 10000))
    }
    assert(reads(plan).exists(_.isLocalRead))
  }

  test("a barrier stage behind a shuffle") {
    val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
      .partitionBy(new HashPartitioner(cluster.executors)) // All tasks run at a time, or none.
    val ids = cluster.run("barrier") {
      shuffled
        .barrier()
        .mapPartitions { records =>
          val sum = records.map(_._2._1.toLong).sum
          BarrierTaskContext.get().allGather(sum.toString).map(_.toLong).iterator
        }
        .collect()
    }
    val records = Workload.Maps.toLong * Workload.RecordsPerMap
    assert(ids.length === cluster.executors * cluster.executors)
    assert(ids.sum === cluster.executors * (records * (records - 1) / 2))
    nothingHeld()
  }

  test("a stream aggregates one batch after the other") {
    val batches = 4
    val spark = cluster.spark
    val input = Files.createDirectory(folder.resolve("stream"))
    for (batch <- 0 until batches) {
      val lines = (0 until 1000).map(i => (batch * 1000 + i).toString)
      Files.write(input.resolve(s"$batch.txt"), lines.asJava)
    }
    cluster.run("stream") {
      spark.readStream
        .option("maxFilesPerTrigger", "1")
        .text(input.toString)
        .select(col("value").cast("long").as("id"))
        .groupBy((col("id") % 50).as("k"))
        .agg(sum("id").as("s"))
        .writeStream
        .outputMode("complete")
        .format("memory")
        .queryName("sums")
        .option("checkpointLocation", folder.resolve("checkpoint").toString)
        .trigger(Trigger.AvailableNow())
        .start()
        .awaitTermination()
    }
    val sums = spark.table("sums").collect().map(row => row.getLong(0) -> row.getLong(1)).toMap
    assert(
      sums === (0L until batches * 1000L).groupBy(_ % 50).map { case (k, ids) => k -> ids.sum })
    nothingHeld()
  }

  override protected def afterAll(): Unit =
    try nothingHeld()
    finally super.afterAll()

  private def nothingHeld(): Unit = if (ManagerUnderTest.isZerohop) cluster.assertNothingHeld()

  private def adaptive(what: String)(query: => DataFrame)(check: Long => Any): DataFrame = {
    val frame = query
    check(cluster.run(what, 90.seconds)(frame.collect().length.toLong))
    assert(frame.queryExecution.executedPlan.isInstanceOf[AdaptiveSparkPlanExec])
    frame
  }

  private def reads(frame: DataFrame): Seq[AQEShuffleReadExec] =
    collect(frame.queryExecution.executedPlan) { case read: AQEShuffleReadExec => read }

  private def withConf[T](settings: Map[String, String])(body: => T): T = {
    val conf = cluster.spark.conf
    val before = settings.keys.map(key => key -> conf.getOption(key)).toMap
    settings.foreach { case (key, value) => conf.set(key, value) }
    try body
    finally before.foreach {
        case (key, Some(value)) => conf.set(key, value)
        case (key, None) => conf.unset(key)
      }
  }
}
