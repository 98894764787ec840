package io.zerohop.spark.gpu

import io.zerohop.spark.support.{Facts, RunBy}

/** Settings that change the way of a shuffle, and no answer; an application each. */
@RunBy.Gpu
class GpuSettingsSuite extends GpuSuite {
  private var chosen = Map.empty[String, String]

  override protected def settings: Map[String, String] = chosen

  test("the plugins in the other order, tables cached by RAPIDS") {
    needsRapids()
    val other = GpuHost.Plugins.split(',').reverse.mkString(",")
    val serializer = "com.nvidia.spark.ParquetCachedBatchSerializer"
    asked("spark.plugins" -> other, "spark.sql.cache.serializer" -> serializer)(
      "group_by", "join", "cached_group_by")(assertOnGpu)
  }

  test("spark.zerohop.rapids.enabled=false: serialised batches") {
    needsRapids()
    asked("spark.zerohop.rapids.enabled" -> "false")("group_by", "join") { facts =>
      assert(facts.number("gpu_exchanges") === 0, facts)
      assert(facts.number("serialised_exchanges") > 0, facts)
      assert(facts.number("direct_bytes") > 0, facts)
      assert(logged.contains("RAPIDS' shuffles go through host memory"))
    }
  }

  test("spark.zerohop.rapids.kudo.enabled=false: RAPIDS' own split") {
    needsRapids()
    asked("spark.zerohop.rapids.kudo.enabled" -> "false")("group_by", "join", "round_robin") {
      facts =>
        assertOnGpu(facts)
        assert(facts.number("kudo_exchanges") === 0, facts)
    }
  }

  test("spark.zerohop.rapids.coalesce.size=0: as many reduce tasks as Spark makes") {
    needsRapids()
    asked()("merge_join")(facts => assert(facts.number("reduce_tasks") === 1, facts))
    asked("spark.zerohop.rapids.coalesce.size" -> "0")("merge_join")(facts =>
      assert(facts.number("reduce_tasks") > 1, facts))
  }

  test("spark.zerohop.device.asyncCommit=false: map tasks wait for their copies") {
    needsRapids()
    asked("spark.zerohop.device.asyncCommit" -> "false")("group_by", "join", "round_robin") {
      facts =>
        assertOnGpu(facts)
        assert(facts.number("direct_bytes") > 0, facts)
        assert(facts.number("async_commits") === 0, facts)
    }
  }

  test("spark.zerohop.paths=staged") {
    asked("spark.zerohop.paths" -> "staged")("group_by", "join", "round_robin") { facts =>
      assertOnGpu(facts)
      assert(facts.number("staged_bytes") > 0, facts)
      assert(facts.number("direct_bytes") === 0, facts)
    }
  }

  private def asked(settings: (String, String)*)(queries: String*)(check: Facts => Unit): Unit = {
    chosen = settings.toMap
    try queries.foreach { query =>
        val facts = ask(query)
        assertEqual(facts)
        check(facts)
      }
    finally stop()
  }
}
