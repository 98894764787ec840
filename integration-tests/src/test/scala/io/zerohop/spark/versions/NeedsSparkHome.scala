package io.zerohop.spark.versions

import org.scalatest.Assertions

/** Fails in CI, and skips with a notice elsewhere, where a Spark home was not laid out. */
trait NeedsSparkHome { self: Assertions =>

  protected def requireHome(home: SparkHome): Unit =
    if (!home.isThere) {
      if (SparkHomes.isCi) fail(SparkHomes.missing(home)) else cancel(SparkHomes.missing(home))
    }
}
