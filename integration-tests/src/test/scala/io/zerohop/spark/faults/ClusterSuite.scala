package io.zerohop.spark.faults

import java.nio.file.{Files, Path}

import io.zerohop.spark.support.Cluster
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Tests that share one cluster; a fault is expected to leave it as good as new. */
abstract class ClusterSuite extends AnyFunSuite with BeforeAndAfterAll {
  protected def executors: Int = 2

  protected def settings: Map[String, String] = Map.empty

  protected def shape: Map[String, String] = Cluster.Small

  /** A standalone master; a local-cluster of its own if there is none. */
  protected def master: Option[String] = None

  /** Whether executors are waited for, where idle ones are not let go meanwhile. */
  protected def await: Boolean = true

  private var running: Option[Cluster] = None

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // A soak whose time is up asks for none.
    if (!Soak.isOver) {
      cluster
      ()
    }
  }

  protected def cluster: Cluster = running.getOrElse {
    val started = new Cluster(executors, settings, master, shape, await)
    running = Some(started)
    started
  }

  protected lazy val folder: Path = Files.createTempDirectory("zerohop-faults")

  override protected def afterAll(): Unit =
    try {
      running.foreach(_.close())
      running = None
    } finally super.afterAll()
}
