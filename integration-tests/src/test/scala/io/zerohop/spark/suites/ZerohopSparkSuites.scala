package io.zerohop.spark.suites

import io.zerohop.spark.support.RunBy
import org.apache.spark.{FailureSuite, SparkFunSuite}
import org.apache.spark.sql.{DataFrameAggregateSuite, JoinSuite}
import org.apache.spark.sql.execution.adaptive.AdaptiveQueryExecSuite

/** Spark's FailureSuite, with every context on the manager under test. */
@RunBy.Verify
class ZerohopFailureSuite extends FailureSuite with ZerohopRouted {
  override def afterEach(): Unit = {
    try if (sc != null && !sc.isStopped) assertRouted()
    finally super.afterEach()
  }
}

/** Spark's joins: sort-merge and shuffled-hash exchanges of every join kind. */
@RunBy.SparkSuites
class ZerohopJoinSuite extends JoinSuite with ZerohopRouted {
  test("runs on the manager under test")(assertRouted())
}

/** Spark's aggregations: partial, distinct and object-hash aggregates over exchanges. */
@RunBy.SparkSuites
class ZerohopAggregateSuite extends DataFrameAggregateSuite with ZerohopRouted with ExemptTests {
  override protected def excluded: Seq[String] =
    super.excluded ++ ZerohopAggregateSuite.OnlyFunctions

  test("runs on the manager under test")(assertRouted())
}

private object ZerohopAggregateSuite {

  /** What functions and types compute, over exchanges as other tests have them. They take long. */
  val OnlyFunctions: Seq[String] = Seq(
    "SPARK-47430 Support GROUP BY MapType",
    "min_by",
    "max_by",
    "listagg function",
    "count_if",
    "any_value",
    "percentile_like",
    "approx_percentile",
    "array_agg function",
    "SPARK-18952: regexes fail codegen when used as keys due to bad forward-slash escapes",
    "SPARK-52407: theta_sketch_agg + theta_union_agg + theta_sketch_estimate positive tests",
    "SPARK-52407: theta_difference + theta_intersection + theta_intersection_agg positive tests")
}

/** Spark's adaptive execution: coalesced, skewed and local reads of map and partition ranges. */
@RunBy.SparkSuites
class ZerohopAdaptiveSuite extends AdaptiveQueryExecSuite with ZerohopRouted with ExemptTests {
  override protected def excluded: Seq[String] =
    super.excluded ++ ZerohopAdaptiveSuite.SortShuffleSizes :+ ZerohopAdaptiveSuite.ThirdCore

  test("runs on the manager under test")(assertRouted())
}

private object ZerohopAdaptiveSuite {

  /**
   * Plans that depend on how many bytes sort shuffle's compressed blocks have, or on its fetching
   * neighbouring blocks as one. Zerohop reports the bytes in memory, and answers are as right.
   */
  val SortShuffleSizes: Seq[String] = Seq(
    "metrics of the shuffle read",
    "SPARK-35264: Support AQE side shuffled hash join formula",
    "SPARK-35725: Support optimize skewed partitions in RebalancePartitions",
    "SPARK-37357: Add small partition factor for rebalance partitions")

  /** Fails on sort shuffle as well: a stage has to fail while two others sleep. */
  val ThirdCore: String = "SPARK-47148: AQE should avoid to submit shuffle job on cancellation"
}

/** Fails if a test of Spark's that is left out is not there any more. */
trait ExemptTests extends SparkFunSuite {
  test("the exempt tests exist") {
    for (name <- excluded) assert(testNames.contains(s"$name (excluded)"))
  }
}
