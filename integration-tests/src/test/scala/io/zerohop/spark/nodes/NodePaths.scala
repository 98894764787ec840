package io.zerohop.spark.nodes

import io.zerohop.spark.support.Facts
import org.scalatest.Assertions

/** Which way bytes are expected to go. */
object NodePaths extends Assertions {

  /** Between nodes: the one place that says it. */
  val Between = "ucx"

  /** Every way that has a counter. */
  val All: Seq[String] = Seq("local", "peer", "staged", "ucx")

  /** In place within an executor and within a node, and one way between nodes. */
  def isExpected(path: String): Boolean = Seq("local", "peer", Between).contains(path)

  /** Whether all expected ways were taken, and no other. */
  def areExpected(facts: Facts): Boolean =
    All.forall(path => bytes(facts, path) > 0 == isExpected(path))

  def assertExpected(facts: Facts): Unit =
    for (path <- All) assert(bytes(facts, path) > 0 === isExpected(path), s"$path: $facts")

  def bytes(facts: Facts, path: String): Long = facts.number(s"${path}_bytes")
}
