package io.zerohop.spark.gpu

import io.zerohop.spark.support.{Facts, RunBy}

/** What Spark SQL asks of exchanges on the GPU, with adaptive execution and without. */
@RunBy.Gpu
class GpuQuerySuite extends GpuSuite {

  test("a cached table is grouped") {
    staysOnGpu("cached_group_by")
  }

  test("a cached table is joined") {
    staysOnGpu("cached_join")
  }

  test("structs without members") {
    assume(GpuHost.spark >= "4", "Spark 3.5 has no encoder of a row with nothing but such a struct")
    staysOnGpu("memberless_struct")
  }

  test("structs without members, some of them null") {
    staysOnGpu("memberless_struct_or_null")
  }

  test("exchanges of the CPU and of the GPU in one query") {
    val facts = staysOnGpu("mixed")
    assert(facts.number("cpu_exchanges") > 0, facts)
  }

  test("adaptive execution coalesces partitions") {
    val facts = staysOnGpu("coalesced")
    assert(facts.flag("coalesced"))
    if (!GpuHost.isSmoke) {
      assert(facts.number("kudo_exchanges") > 0, facts)
      assert(facts.number("async_commits") > 0, facts)
    }
  }

  test("adaptive execution splits a skewed join") {
    assert(staysOnGpu("skewed_join").flag("skewed"))
  }

  for (query <- Seq("group_by", "join", "round_robin")) {
    test(s"Spark's row checksums switched on: $query") {
      assume(GpuHost.spark >= "4.1", "Spark has row checksums from 4.1 on")
      val facts = staysOnGpu(s"checksums_$query")
      if (!GpuHost.isSmoke) assert(facts.number("kudo_exchanges") > 0, facts)
    }
  }

  private def staysOnGpu(scenario: String): Facts = {
    val facts = ask(scenario)
    assertEqual(facts)
    assertOnGpu(facts)
    assert(facts.number("direct_bytes") > 0, facts)
    assert(facts.number("staged_bytes") === 0, facts)
    facts
  }
}
