package io.zerohop.spark.suites

import org.apache.spark.{SparkEnv, SparkFunSuite}

/**
 * Shows that a Spark suite really exercises the shuffle manager under test: Spark reads the
 * manager's name from a system property that the build sets, and a suite that silently ran on
 * another manager would prove nothing.
 */
trait ZerohopRouted { self: SparkFunSuite =>

  /** Fails unless the running application shuffles through the manager under test. */
  protected def assertRouted(): Unit = {
    val wanted = ManagerUnderTest.className
    val actual = SparkEnv.get.shuffleManager.getClass.getName
    assert(
      actual === wanted,
      s"the suite ran on $actual; set -Dspark.shuffle.manager=${ManagerUnderTest.name}")
  }
}
