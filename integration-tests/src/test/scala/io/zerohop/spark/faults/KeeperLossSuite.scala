package io.zerohop.spark.faults

import io.zerohop.spark.support.{Cluster, Leftover, PathBytes, RunBy}
import org.apache.spark.rdd.RDD

/**
 * Executors and their keeper die by SIGKILL at each moment of a shuffle. The answer stays the same,
 * and as long as the keeper lives nothing that it holds is computed again.
 */
@RunBy.Faults
class KeeperLossSuite extends KeeperClusterSuite {
  import Workload.{Maps, RecordsPerMap, Reducers}

  private type Shuffled = RDD[(Int, (Int, String))]

  test("an executor during write, beside what it has published") {
    soak("executor killed during write") { run =>
      val kept = keptShuffle()
      val fault = Fault.in(folder)
      val (answer, _) = cluster.counted("killed during write") {
        Workload.answer(Workload.shuffled(cluster.sc) { (map, record) =>
          if (map == run % Maps && record == RecordsPerMap / 2) fault.killSelf()
        })((_, _) => ())
      }
      assert(answer === Workload.expected)
      committed(fault)
      readAsItIs(kept)((_, _) => ())
    }
  }

  test("an executor between stages") {
    soak("executor killed between stages") { _ =>
      val kept = keptShuffle()
      cluster.kill(youngest)
      Soak.killed(1)
      readAsItIs(kept)((_, _) => ())
    }
  }

  test("all executors between stages") {
    soak("all executors killed between stages") { _ =>
      val kept = keptShuffle()
      killAll()
      readAsItIs(kept)((_, _) => ())
    }
  }

  test("during read: the owner of the blocks") {
    soak("owner killed during read") { run =>
      val kept = keptShuffle()
      struck(run)(_.killOthers())(readAsItIs(kept))
    }
  }

  test("during read: the reader, with its leases") {
    soak("reader killed during read") { run =>
      val kept = keptShuffle()
      struck(run)(_.killSelf())(readAsItIs(kept))
    }
  }

  test("the keeper during read: executors that live serve their own") {
    soak("keeper killed during read") { run =>
      val kept = keptShuffle()
      val keepers = living.map(_.pid).toSeq
      struck(run)(_.once("the keeper")(Cluster.kill(keepers: _*)))(readAsItIs(kept))
    }
  }

  test("the keeper during read, of what only it has") {
    soak("executors killed, then their keeper during read") { run =>
      val kept = keptShuffle()
      val keepers = living.map(_.pid).toSeq
      killAll()
      struck(run)(_.once("the keeper")(Cluster.kill(keepers: _*)))(read(kept))
    }
  }

  test("the keeper and the owner at once") {
    soak("keeper and owner killed during read") { run =>
      val kept = keptShuffle()
      val keepers = living.map(_.pid).toSeq
      val bytes = struck(run) {
        _.once("both")(Cluster.kill(keepers ++ Cluster.otherExecutors.values: _*))
      }(read(kept))
      Soak.killed(1)
      bytes
    }
  }

  /** Commits a fault in the middle of one reduce task, and counts the executors that it has killed. */
  private def struck(run: Int)(strike: Fault => Unit)(
      read: ((Int, Int) => Unit) => PathBytes): PathBytes = {
    val fault = Fault.in(folder)
    val bytes = read { (partition, record) =>
      if (partition == run % Reducers && record == 100) strike(fault)
    }
    committed(fault)
    bytes
  }

  private def killAll(): Unit = {
    val all = cluster.pids.values.toSeq
    Cluster.kill(all: _*)
    Soak.killed(all.size)
  }

  private def soak(fault: String)(once: Int => PathBytes): Unit =
    Soak.repeat(s"$fault, with a keeper") { run =>
      cluster.awaitExecutors()
      val bytes = once(run)
      cluster.awaitExecutors()
      cluster.assertNothingHeldOfTheDead()
      Leftover.unless("the keeper holds nothing of the dead")(left.isEmpty)
      bytes.failedTasks
    }

  private def committed(fault: Fault): Unit = {
    assert(fault.happened)
    Soak.killed(fault.killed)
  }

  private def read(kept: Shuffled)(onRead: (Int, Int) => Unit): PathBytes = {
    val (answer, bytes) = cluster.counted("read what was kept")(Workload.answer(kept)(onRead))
    assert(answer === Workload.expected)
    bytes
  }

  /** Nothing is computed again. */
  private def readAsItIs(kept: Shuffled)(onRead: (Int, Int) => Unit): PathBytes = {
    val bytes = read(kept)(onRead)
    assert(bytes.finishedMapTasks === 0, bytes.fetchFailures.mkString("; "))
    bytes
  }
}
