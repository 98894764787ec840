package io.zerohop.spark.faults

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.apache.spark.zerohop.SparkInternals

/** Shuffles of many map tasks with next to nothing each; the soak has 100,000 of them. */
@RunBy.Faults
class ManyMapsSuite extends ClusterSuite {
  test("every one of many map outputs is read") {
    val maps = if (Soak.runs > 3) 100000 else 5000
    val partitions = 3
    val (sizes, bytes) = cluster.counted(s"$maps maps", 20.minutes) {
      cluster.sc
        .parallelize(0 until maps, maps)
        .map(i => (i % partitions, i.toLong))
        .reduceByKey(_ + _, partitions)
        .collectAsMap()
    }
    val expected = (0L until maps).groupMapReduce(i => (i % partitions).toInt)(identity)(_ + _)
    assert(sizes === expected)
    assert(bytes.failedTasks === 0)
    if (ManagerUnderTest.isZerohop) {
      assert(bytes.bytes("staged") === 0)
      val used = cluster.gauges("pool.used.bytes").values.sum
      info(s"$maps map outputs take ${used / maps} bytes of the pools each")
      cluster.assertNothingHeld()
    }
  }

  test("a location in each map status is small on the driver and on its way") {
    val all = 100000
    val (_, before) = SparkInternals.mapStatuses(all, None)
    val (locations, after) = SparkInternals.mapStatuses(
      all, Some("zh4:01234567:0123456789abcdef:0123456789abcdef:65535::12345-0123456789abcdef"))
    assert(locations === 100)
    info(s"$all map statuses on their way: $before bytes without our locations, $after with them")
    assert(after - before < 10L * all)
  }
}
