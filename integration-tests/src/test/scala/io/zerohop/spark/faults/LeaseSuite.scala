package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.apache.spark.HashPartitioner
import org.apache.spark.zerohop.SparkInternals

/** How long a task keeps what it reads from being freed. */
@RunBy.Faults
class LeaseSuite extends ClusterSuite {

  test("a task that has read everything holds no lease while it goes on") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has no leases")
    val leases = cluster.run("a task that asks itself") {
      cluster.sc
        .parallelize(0 until 10000, 8)
        .map(i => (i, i))
        .partitionBy(new HashPartitioner(1))
        .mapPartitions { records =>
          records.next()
          val reading = LeaseSuite.open
          val rest = records.size
          Iterator((reading, rest, LeaseSuite.open))
        }
        .collect()
    }
    val Array((reading, rest, afterwards)) = leases
    assert(rest === 9999)
    assert(reading > 0)
    assert(afterwards === 0)
  }
}

object LeaseSuite {

  /** Leases that readers of this executor hold. */
  private def open: Long = SparkInternals.gauge("zerohop", "leases.open").get
}
