package io.zerohop.spark.nodes

import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.zerohop.cluster.TwoNodes
import io.zerohop.spark.gpu.UserClusterSuite
import io.zerohop.spark.platforms.Distribution
import io.zerohop.spark.support.RunBy

/**
 * A standalone cluster over two nodes, and a user on one of them who runs [[UserClusterSuite]]
 * against it and reads the report.
 */
@RunBy.Nodes
class UserClusterRunSuite extends NodesSuite {
  private val LimitSeconds = 400

  /** For a small machine, and with no patience for what is gone; a jar comes with the application. */
  private val chosen = Map(
    "spark.driver.host" -> "10.201.0.1",
    "spark.driver.bindAddress" -> "10.201.0.1",
    "spark.executor.cores" -> "1",
    "spark.executor.memory" -> "640m",
    "spark.sql.shuffle.partitions" -> "6",
    "spark.locality.wait" -> "0",
    "spark.shuffle.io.maxRetries" -> "1",
    "spark.shuffle.io.retryWait" -> "200ms",
    "spark.zerohop.pool.size" -> "256m")

  /** By one application, as CI has little time; all of them take four times as long. */
  private val Tests =
    Seq("describes", ": group_by", "decommissioned", "path local", "path peer", "path sent",
      "path ucx")

  test("the suite against a cluster that runs already") {
    val folder = Files.createTempDirectory(
      Files.createDirectories(NodesHost.target.resolve("nodes")), "user-cluster-")
    val conf = folder.resolve("cluster.conf")
    Files.write(conf, chosen.map { case (key, value) => s"$key=$value" }.asJava)
    Using.resource(TwoNodes.make()) { nodes =>
      Using.resource(NodesHost.cluster(nodes, folder, Map.empty)) { cluster =>
        val process = suite(nodes, cluster.master, folder, conf)
        try {
          assert(process.waitFor(LimitSeconds.toLong, TimeUnit.SECONDS), s"see $folder")
          assert(process.exitValue === 0, s"see $folder/suite.out")
        } finally Distribution.end(process)
      }
    }
    val reports = Using.resource(Files.list(folder.resolve("target/cluster-suite")))(
      _.iterator.asScala.toSeq)
    assert(reports.size === 1)
    checkReport(new ObjectMapper().readTree(reports.head.resolve("report.json").toFile))
    val text = Files.readString(reports.head.resolve("report.txt"))
    assert(text.contains("on node-2") && text.contains("decommissioned"))
    assert(!text.contains("10.201.0."))
  }

  private def checkReport(report: JsonNode): Unit = {
    assert(report.get("result").asText === "passed")
    assert(report.get("spark").asText.startsWith("4.1.3 "))
    val executors = report.get("executors").elements.asScala.toSeq.map(_.get("node").asText)
    assert(executors.sorted === Seq("node-1", "node-1", "node-2"))
    val tests = report.get("tests").elements.asScala.toSeq
    val (passed, others) = tests.partition(_.get("result").asText == "passed")
    assert(passed.size === 6)
    // There is no UCX that is trusted.
    assert(others.map(_.get("result").asText) === Seq("canceled"))
    assert(others.head.get("why").asText.contains("trustedNetwork"))
    for (path <- Seq("local", "peer", "sent"))
      assert(tests.exists(_.get("bytes").has(path)), path)
    assert(!report.toString.contains("10.201.0."))
  }

  /** As Maven runs it, on the first node. */
  private def suite(nodes: TwoNodes, master: String, folder: Path, conf: Path): Process = {
    val properties = Map(
      "zerohop.test.target" -> Files.createDirectories(folder.resolve("target")),
      "zerohop.test.repository" -> Distribution.repository,
      "zerohop.test.suites" -> sys.props("zerohop.test.suites"),
      "zerohop.test.cluster" -> master,
      "zerohop.test.cluster.conf" -> conf,
      "zerohop.test.cluster.executors" -> NodesHost.Executors,
      "spark.test.home" -> NodesHost.installation.sparkHome.root)
    val options = "-Xmx768m" +: properties.map { case (key, value) => s"-D$key=$value" }.toSeq
    val command = NodesHost.installation.sparkHome.javaCommand(
      options.asJava,
      NodesHost.classPath.asJava,
      "org.scalatest.tools.Runner",
      (Seq("-s", classOf[UserClusterSuite].getName, "-oDW") ++ Tests.flatMap(Seq("-z", _))).asJava)
    Distribution.process(nodes.first.command(command).asScala.toSeq, folder, "suite", Map.empty)
      .start()
  }
}
