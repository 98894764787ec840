package io.zerohop.spark.suites

import io.zerohop.spark.support.RunBy
import org.apache.spark.{ShuffleDependency, ShuffleSuite, SparkContext}

/**
 * Spark's ShuffleSuite on Zerohop. Exempt are only the tests that look for shuffle files in Spark's
 * local directories, where Zerohop has none while the pool has room.
 */
@RunBy.SparkSuites
class ZerohopShuffleSuite extends ShuffleSuite with ZerohopRouted {

  // ShuffleSuite's configuration ignores system properties.
  for (key <- Seq("spark.shuffle.manager", "spark.executor.extraClassPath")) {
    conf.set(key, sys.props(key))
  }

  override protected def excluded: Seq[String] = ZerohopShuffleSuite.OnDiskFiles

  test("only the four tests that assert on disk files are exempt") {
    val exempt = testNames.filter(tags.getOrElse(_, Set.empty).contains("org.scalatest.Ignore"))
    assert(exempt === ZerohopShuffleSuite.OnDiskFiles.map(_ + " (excluded)").toSet)
    assert(testNames.size === 20 + 2)
  }

  override def afterEach(): Unit = {
    try if (sc != null && !sc.isStopped) assertRouted()
    finally super.afterEach()
  }

  test("a dependency of any kind gets Zerohop's handle") {
    assume(ManagerUnderTest.isZerohop, "sort shuffle has handles of its own")
    sc = new SparkContext("local", "test", conf)
    val pairs = sc.parallelize(1 to 10, 2).map((_, 1))
    for (shuffled <- Seq(pairs.reduceByKey(_ + _), pairs.groupByKey(), pairs.sortByKey())) {
      val handle = shuffled.dependencies.head.asInstanceOf[ShuffleDependency[_, _, _]].shuffleHandle
      assert(handle.getClass.getName.startsWith("io.zerohop."))
    }
  }
}

private object ZerohopShuffleSuite {
  val OnDiskFiles: Seq[String] = Seq(
    "shuffle with different compression settings (SPARK-3426)",
    "[SPARK-4085] rerun map stage if reduce stage cannot find its local shuffle file",
    "cannot find its local shuffle file if no execution of the stage and rerun shuffle",
    "SPARK-36206: shuffle checksum detect disk corruption")
}
