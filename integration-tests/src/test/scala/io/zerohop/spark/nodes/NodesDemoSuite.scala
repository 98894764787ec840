package io.zerohop.spark.nodes

import java.nio.file.{Files, Path}
import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._

import io.zerohop.spark.faults.Soak
import io.zerohop.spark.support.RunBy
import io.zerohop.workload.{ClusterShape, Contender, ResultFile, Testbed, Workload}
import org.apache.commons.io.FileUtils

/** The demo's queries on two nodes: every row is that of sort shuffle on one. */
@RunBy.Nodes
class NodesDemoSuite extends NodesSuite {
  private val Scale = 0.02
  private val Partitions = 8

  override protected def settings: Map[String, String] = Map(
    "spark.sql.shuffle.partitions" -> Partitions.toString,
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.files.maxPartitionBytes" -> "2m")

  private lazy val folder: Path = Files.createTempDirectory("zerohop-nodes-demo")

  /** What sort shuffle returns, and the tables. */
  private lazy val yardstick: Testbed = {
    val local = Files.createDirectories(folder.resolve("local"))
    val shape = new ClusterShape(
      1, 2, 1024, local, ClusterShape.allShuffled(Partitions, JavaMap.of[String, String]()))
    val testbed = new Testbed(NodesHost.installation, shape, folder)
    try {
      testbed.generate(Scale)
      testbed.start(0, Contender.SORT)
      testbed.awaitReady()
      for (query <- queries) {
        val outcome = testbed.run(0, query)
        assert(outcome.succeeded, outcome)
      }
      testbed
    } finally testbed.close()
  }

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally FileUtils.deleteDirectory(folder.toFile)

  test("every row of every query is sort shuffle's, over the expected paths") {
    yardstick
    onNodes { app =>
      app.ask(s"tables ${yardstick.data}")
      Soak.repeat("the demo's queries on two nodes", Soak.longRuns) { _ =>
        val seen = queries.map(query => query -> compared(app, query))
        // Not each of them has bytes for everybody.
        for (path <- NodePaths.All) {
          val bytes = seen.map { case (_, facts) => NodePaths.bytes(facts, path) }.sum
          assert(bytes > 0 === NodePaths.isExpected(path), s"$path: $seen")
        }
        app.ask("settle")
        0
      }
    }
  }

  /** Where faults are run but a few times, the ones that shuffle most. */
  private def queries: Seq[String] =
    if (Soak.longRuns > 1) Workload.ALL.asScala.toSeq
    else Seq("q5", "q9", "q21", "repartition", "skewed_join")

  private def compared(app: NodesApplication, query: String) = {
    val result = folder.resolve(s"nodes-$query.txt")
    val facts = app.ask(s"query $query $result")
    val differences =
      ResultFile.differences("sort", yardstick.result(0, query), "two nodes", result)
    assert(differences.isEmpty, s"$query: ${differences.asScala.take(5).mkString("\n")}")
    facts
  }
}
