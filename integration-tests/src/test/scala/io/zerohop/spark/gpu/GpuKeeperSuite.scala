package io.zerohop.spark.gpu

import io.zerohop.spark.support.RunBy

/** Map outputs in GPU memory outlive their executor where its node has a keeper. */
@RunBy.Gpu
class GpuKeeperSuite extends GpuSuite {
  override protected def settings: Map[String, String] = Map("spark.zerohop.keeper" -> "true")

  test("no output of an executor that is killed between stages is computed again") {
    for (_ <- 1 to 3) {
      val facts = ask("owner_killed_kept")
      assert(facts.flag("equal"), facts)
      assert(facts.number("map_tasks") === 0, facts)
      assert(facts.number("failed_tasks") === 0, facts)
      assert(facts.number("peer_bytes") > 0, facts)
      if (!GpuHost.isSmoke) assert(facts.number("gpu_exchanges") === 1, facts)
    }
  }
}
