package io.zerohop.spark.rdma

import java.nio.file.{Files, Path, Paths, StandardOpenOption}

import scala.util.control.NonFatal

import io.zerohop.spark.support.{Cluster, Facts}
import org.apache.spark.SparkConf

/**
 * The driver program on machines that have an RDMA adapter each (integration-tests/rdma): runs
 * scenarios one after the other, and ends with 1 if one of them did not end as it has to.
 */
object RdmaApplication {

  /**
   * @param args where a line of JSON goes for each scenario, the name of the machine that is struck
   *   and of its network card, and names of scenarios
   */
  def main(args: Array[String]): Unit = {
    val conf = new SparkConf
    val cluster = new Cluster(2, conf.getAll.toMap, Some(conf.get("spark.master")), await = false)
    val scenarios = new Scenarios(cluster, args(1), args(2))
    val failed = args.drop(3).filterNot(run(scenarios, _, Paths.get(args(0))))
    cluster.close()
    sys.exit(if (failed.isEmpty) 0 else 1)
  }

  private def run(scenarios: Scenarios, name: String, report: Path): Boolean = {
    val begin = System.nanoTime
    val (right, facts) =
      try (true, scenarios.run(name))
      catch {
        case NonFatal(e) =>
          e.printStackTrace()
          (false, Map[String, Any](Facts.Error -> e.toString))
      }
    val line = Facts.write(
      Map[String, Any](
        "scenario" -> name,
        "right" -> right,
        "seconds" -> (System.nanoTime - begin) / 1000000 / 1000.0) ++ facts)
    println(line)
    Files.writeString(report, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND)
    right
  }
}
