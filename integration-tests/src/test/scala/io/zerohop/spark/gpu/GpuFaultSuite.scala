package io.zerohop.spark.gpu

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.{Facts, RunBy}

/**
 * Whatever happens in the middle of a shuffle on the GPU, the answer stays that of the CPU.
 *
 * @param wayBetween what counts the bytes that one executor reads of the other's
 */
abstract class GpuFaults(wayBetween: String) extends GpuSuite {
  // Small, so that a map task packs often and a reduce task reads window by window.
  override protected def settings: Map[String, String] = Map(
    "spark.rapids.sql.batchSizeBytes" -> "64k",
    "spark.zerohop.rapids.pack.size" -> "256k",
    "spark.zerohop.rapids.batch.size" -> "1m",
    "spark.zerohop.device.window.size" -> "64k",
    "spark.zerohop.write.buffer" -> "64k")

  test("an executor is killed while it writes") {
    killed("executor killed during write", "killed_in_write") { facts =>
      assert(facts.number("failed_tasks") > 0, facts)
    }
  }

  test("the owner of map outputs is killed while they are read") {
    killed("owner killed during read", "owner_killed_in_read")(assertWrittenAgain)
  }

  test("a reader is killed with its leases") {
    killed("reader killed during read", "reader_killed_in_read")(assertWrittenAgain)
  }

  test("a map task fails when it has packed and not committed") {
    val facts = survived("failed_before_commit")
    assert(facts.number("pool_then") > 0, facts)
    assert(facts.number("failed_tasks") === 1, facts)
    assert(facts.number("map_tasks") === 1, facts)
    assert(facts.number(wayBetween) > 0, facts)
  }

  test("a map task fails when its output is published and its MapStatus not sent") {
    val facts = survived("failed_after_commit")
    assert(facts.number("pool_then") > 0, facts)
    assert(facts.number("failed_tasks") === 1, facts)
    assert(facts.number("map_tasks") === 1, facts)
  }

  test("map outputs that are published and then lost are written again") {
    // By whichever way what is written again is read: it may all be the readers' own.
    val facts = survived("output_lost")
    assert(facts.number("fetch_failures") > 0, facts)
    assert(facts.number("map_tasks") > 0, facts)
  }

  test("a flipped byte in the header of a block is found and the block written again") {
    val facts = survived("header_damaged")
    // The byte may be a catalog's that was put where a freed header lay; it has a checksum, too.
    val failure = facts.text("fetch_failure")
    assert(failure.contains("CRC32C") || failure.matches(".*the catalog of .* is damaged.*"), facts)
    assert(facts.number(wayBetween) > 0, facts)
    assert(facts.number("map_tasks") > 0, facts)
  }

  test("a flipped byte in a block that lies on the GPU is found and the block written again") {
    // Rows have one form only.
    val packed = if (GpuHost.isSmoke) None else Some("packed_block_damaged")
    for (scenario <- Seq("block_damaged") ++ packed) {
      val facts = survived(scenario)
      assert(facts.text("fetch_failure").contains("CRC32C"), facts)
      assert(facts.number("map_tasks") > 0, facts)
    }
  }

  test("a query that is cancelled while it writes leaves nothing") {
    cancelled("cancelled_in_write")
  }

  test("a query that is cancelled while it reads leaves nothing") {
    cancelled("cancelled_in_read")
  }

  private def killed(fault: String, scenario: String)(more: Facts => Unit): Unit =
    Soak.repeat(if (wayBetween == "sent_bytes") s"$fault, blocks by sent" else fault) { _ =>
      val facts = survived(scenario)
      Soak.killed(facts.number("killed").toInt)
      assert(facts.number("killed") > 0, facts)
      more(facts)
      facts.number("failed_tasks").toInt
    }

  private def assertWrittenAgain(facts: Facts): Unit = {
    assert(facts.number("map_tasks") > FaultyQuery.Maps, facts)
    ()
  }

  /** That nothing is held afterwards is asserted by the application itself. */
  private def survived(scenario: String): Facts = {
    val facts = ask(scenario)
    assert(facts.flag("happened"), facts)
    assert(facts.flag("equal"), facts)
    assert(facts.number("direct_bytes") > 0, facts)
    if (!GpuHost.isSmoke) assert(facts.number("gpu_exchanges") === 1, facts)
    facts
  }

  private def cancelled(scenario: String): Unit = {
    val facts = ask(scenario)
    assert(facts.number("pool_then") > 0, facts)
    assert(facts.text("message").contains("cancelled"), facts)
    assert(facts.flag("equal_after"), facts)
    assertOnGpu(facts)
  }
}

/** The executors are peers of one node, each with a GPU, or share one. */
@RunBy.Gpu
class GpuFaultSuite extends GpuFaults("peer_bytes")

/** As between nodes: owners send their blocks over Spark's connections. */
@RunBy.Gpu
class GpuSentFaultSuite extends GpuFaults("sent_bytes") {
  override protected def settings: Map[String, String] =
    super.settings + ("spark.zerohop.paths" -> "local,sent,staged")
}

/** Each executor takes the other to be on another node, and gets what it holds by UCX. */
@RunBy.Gpu
class GpuNodeFaultSuite extends GpuFaults("ucx_bytes") {
  override protected def missing: Option[String] = super.missing.orElse(GpuHost.missingUcx)

  override protected def settings: Map[String, String] = super.settings ++ Map(
    "spark.zerohop.paths" -> "local,ucx,staged",
    "spark.zerohop.ucx.trustedNetwork" -> "true",
    "spark.executorEnv.LD_LIBRARY_PATH" -> GpuHost.ucxLibraries)
}
