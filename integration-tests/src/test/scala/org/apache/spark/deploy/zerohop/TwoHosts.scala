package org.apache.spark.deploy.zerohop

import java.nio.file.Files

import org.apache.spark.SparkConf
import org.apache.spark.deploy.master.Master
import org.apache.spark.deploy.worker.Worker
import org.apache.spark.rpc.RpcEnv

/**
 * A standalone master and two workers that Spark takes for different hosts, since they go by
 * different loopback addresses. Only so does Spark start speculative attempts on one machine.
 */
final class TwoHosts(memoryMiB: Int) extends AutoCloseable {
  private val conf = new SparkConf().set("spark.master.rest.enabled", "false")
  private val master: RpcEnv = Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)._1

  val url: String = s"spark://127.0.0.1:${master.address.port}"

  private val workers: Seq[RpcEnv] = Seq("127.0.0.1", "127.0.0.2").zipWithIndex.map {
    case (host, number) =>
      val folder = Files.createTempDirectory("zerohop-worker").toString
      Worker.startRpcEnvAndEndpoint(
        host, 0, 0, 1, memoryMiB, Array(url), folder, Some(number), conf)
  }

  override def close(): Unit = {
    workers.foreach(_.shutdown())
    workers.foreach(_.awaitTermination())
    master.shutdown()
    master.awaitTermination()
  }
}
