package io.zerohop.spark.gpu

import java.nio.file.Files

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.{Facts, RunBy}

/** Map outputs in GPU memory outlive their executor where its node has a keeper. */
abstract class GpuKept extends GpuSuite {
  override protected def settings: Map[String, String] = Map("spark.zerohop.keeper" -> "true")

  /** A query whose map outputs are all in a keeper when executors leave: none is computed again. */
  protected def asItWas(scenario: String): Facts = {
    val facts = ask(scenario)
    assert(facts.flag("equal"), facts)
    assert(facts.number("map_tasks") === 0, facts)
    assert(facts.number("fetch_failures") === 0, facts)
    assert(facts.number("direct_bytes") > 0, facts)
    if (!GpuHost.isSmoke) assert(facts.number("gpu_exchanges") === 1, facts)
    facts
  }
}

@RunBy.Gpu
class GpuKeeperSuite extends GpuKept {
  for ((moment, scenario) <- Seq(
      "executor killed between stages" -> "owner_killed_kept",
      "owner killed during read" -> "owner_killed_in_read_kept",
      "reader killed during read" -> "reader_killed_in_read_kept"))
    test(s"no output is computed again: $moment") {
      Soak.repeat(s"$moment, with a keeper") { _ =>
        val facts = asItWas(scenario)
        Soak.killed(facts.number("killed").toInt)
        assert(facts.number("killed") === 1, facts)
        facts.number("failed_tasks").toInt
      }
    }
}

/** Map outputs that nobody reads are copied from the GPU and written to files. */
@RunBy.Gpu
class GpuKeeperFilesSuite extends GpuKept {
  override protected def settings: Map[String, String] =
    super.settings + ("spark.zerohop.keeper.files.idle" -> "1s")

  test("no output of a killed executor is computed again that went from the GPU to files") {
    for (_ <- 1 to Soak.longRuns) {
      val facts = asItWas("owner_killed_kept_in_files")
      assert(facts.number("killed") === 1, facts)
      assert(facts.number("staged_bytes") > 0, facts)
    }
  }
}

/** Each executor takes the others to be on nodes of their own, where they cannot map memory. */
@RunBy.Gpu
class GpuKeeperFarSuite extends GpuKept {
  // Spark refuses its own keys in extraJavaOptions, but does not read the files that they name.
  private lazy val options = Files.createTempDirectory("zerohop-nodes")

  override protected def settings: Map[String, String] =
    super.settings + ("spark.executor.extraJavaOptions" -> s"@$options/{{EXECUTOR_ID}}")

  test("no output of a killed executor is computed again that another node reads from the GPU") {
    for (id <- 0 to 2 * Soak.longRuns)
      Files.writeString(options.resolve(id.toString), s"-Dspark.zerohop.node.id=node-$id")
    for (_ <- 1 to Soak.longRuns) {
      val facts = asItWas("owner_killed_kept")
      assert(facts.number("killed") === 1, facts)
      assert(facts.number("staged_bytes") > 0, facts)
      assert(facts.number("peer_bytes") === 0, facts)
    }
  }
}

/** Dynamic allocation gives all executors but one back between the stages. */
abstract class GpuKeptAllocation(initial: Int, most: Int) extends GpuKept {
  override protected def executors: Int = most

  override protected def settings: Map[String, String] = super.settings ++ Map(
    // Spark has it on in tests alone, and its query fails where an executor leaves meanwhile.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled" -> "false",
    "spark.dynamicAllocation.enabled" -> "true",
    "spark.dynamicAllocation.minExecutors" -> "1",
    "spark.dynamicAllocation.initialExecutors" -> initial.toString,
    "spark.dynamicAllocation.maxExecutors" -> most.toString,
    "spark.dynamicAllocation.executorIdleTimeout" -> "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout" -> "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout" -> "2s")

  test("no output of an executor that dynamic allocation gives back is computed again") {
    for (_ <- 1 to Soak.longRuns) {
      val facts = asItWas("given_back")
      // Some more may be on their way out, of those that ran no task of this stage.
      assert(facts.number("given_back") >= most - 1, facts)
      assert(facts.number("added") > 0, facts)
      assert(facts.number("failed_tasks") === 0, facts)
    }
  }
}

@RunBy.Gpu
class GpuKeeperAllocationSuite
    extends GpuKeptAllocation(initial = GpuHost.Executors, most = GpuHost.Executors)

/** Several executors of a GPU are given back; the memory of all but the last goes to files. */
@RunBy.Gpu
class GpuKeeperGrowthSuite extends GpuKeptAllocation(initial = 1, most = 4)
