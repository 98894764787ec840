package io.zerohop.spark.suites

import org.apache.spark.FailureSuite
import org.apache.spark.sql.{DataFrameAggregateSuite, JoinSuite}
import org.apache.spark.sql.execution.adaptive.AdaptiveQueryExecSuite

/** Spark's FailureSuite, with every context on the manager under test. */
class ZerohopFailureSuite extends FailureSuite with ZerohopRouted {
  override def afterEach(): Unit = {
    try if (sc != null && !sc.isStopped) assertRouted()
    finally super.afterEach()
  }
}

/** Spark's joins: sort-merge and shuffled-hash exchanges of every join kind. */
class ZerohopJoinSuite extends JoinSuite with ZerohopRouted {
  test("runs on the manager under test")(assertRouted())
}

/** Spark's aggregations: partial, distinct and object-hash aggregates over exchanges. */
class ZerohopAggregateSuite extends DataFrameAggregateSuite with ZerohopRouted {
  test("runs on the manager under test")(assertRouted())
}

/** Spark's adaptive execution: coalesced, skewed and local reads of map and partition ranges. */
class ZerohopAdaptiveSuite extends AdaptiveQueryExecSuite with ZerohopRouted {
  // Fails on sort shuffle as well: it needs a third core, so that a stage can fail while two sleep.
  override protected def excluded: Seq[String] =
    super.excluded :+ "SPARK-47148: AQE should avoid to submit shuffle job on cancellation"

  test("runs on the manager under test")(assertRouted())
}
