package io.zerohop.spark.nodes

import io.zerohop.spark.support.{Facts, PathBytes}
import org.scalatest.Assertions

/** Which way bytes are expected to go. */
object NodePaths extends Assertions {

  /** Between nodes, unless a suite says otherwise: the one place that says it. */
  val Between = "sent"

  /** Every way that has a counter. */
  val All: Seq[String] = PathBytes.Paths

  /** In place within an executor and within a node, and one way between nodes. */
  def isExpected(path: String, between: String = Between): Boolean =
    Seq("local", "peer", between).contains(path)

  /** Whether all expected ways were taken, and no other. */
  def areExpected(facts: Facts, between: String): Boolean =
    All.forall(path => bytes(facts, path) > 0 == isExpected(path, between))

  def assertExpected(facts: Facts, between: String): Unit =
    for (path <- All)
      assert(bytes(facts, path) > 0 === isExpected(path, between), s"$path: $facts")

  def bytes(facts: Facts, path: String): Long = facts.number(s"${path}_bytes")
}
