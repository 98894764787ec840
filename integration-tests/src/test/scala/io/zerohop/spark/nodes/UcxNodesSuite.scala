package io.zerohop.spark.nodes

import org.scalatest.{Canceled, Outcome}

/** Tests on two nodes whose executors read each other by UCX; cancelled where there is none. */
abstract class UcxNodesSuite extends NodesSuite {
  override protected def between: String = "ucx"

  override protected def settings: Map[String, String] = NodesHost.ucx

  override protected def withFixture(test: NoArgTest): Outcome =
    NodesHost.missingUcx match {
      case Some(reason) => Canceled(reason)
      case None => super.withFixture(test)
    }
}
