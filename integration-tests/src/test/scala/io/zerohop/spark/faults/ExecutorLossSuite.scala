package io.zerohop.spark.faults

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.RunBy
import org.apache.spark.sql.functions.{col, count, sum, udf}
import org.apache.spark.zerohop.SparkInternals

/**
 * An executor dies by SIGKILL at each moment of a shuffle; the answer stays the same.
 *
 * @param path by which executors read each other's blocks
 */
abstract class ExecutorLosses(path: String) extends ClusterSuite {
  override protected def settings: Map[String, String] =
    super.settings + ("spark.zerohop.paths" -> s"local,$path,staged")

  private val by = if (path == "peer") "" else s", blocks by $path"

  test("executors read each other's blocks by the path that is tested") {
    assume(ManagerUnderTest.isZerohop)
    cluster.awaitExecutors()
    val (answer, bytes) = cluster.counted(s"a shuffle$by")(
      Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ()))((_, _) => ()))
    assert(answer === Workload.expected)
    assert(bytes.bytes(path) > 0)
    assert(bytes.bytes("staged") === 0)
  }

  test("during write") {
    Soak.repeat(s"executor killed during write$by") { run =>
      val fault = Fault.in(folder)
      val victim = run % Workload.Maps
      survives(fault) {
        Workload.answer(Workload.shuffled(cluster.sc) { (map, record) =>
          if (map == victim && record == Workload.RecordsPerMap / 2) fault.killSelf()
        })((_, _) => ())
      }
    }
  }

  test("between stages") {
    Soak.repeat(s"executor killed between stages$by") { run =>
      cluster.awaitExecutors()
      val shuffled = Workload.shuffled(cluster.sc)((_, _) => ())
      val (answer, bytes) = cluster.counted(s"killed between stages, run $run") {
        assert(shuffled.count() === Workload.Maps * Workload.RecordsPerMap)
        // The youngest, so that in the eldest adds up what the dead leave behind.
        cluster.kill(cluster.pids.keys.maxBy(_.toInt))
        Soak.killed(1)
        Workload.answer(shuffled)((_, _) => ())
      }
      assert(answer === Workload.expected)
      assert(bytes.finishedMapTasks > Workload.Maps)
      afterFault()
      bytes.failedTasks
    }
  }

  test("during read: the owner of the blocks") {
    Soak.repeat(s"owner killed during read$by") { run =>
      val fault = Fault.in(folder)
      survives(fault) {
        Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ())) { (partition, record) =>
          if (partition == run % Workload.Reducers && record == 100) fault.killOthers()
        }
      }
    }
  }

  test("during read: the reader, with its leases") {
    Soak.repeat(s"reader killed during read$by") { run =>
      val fault = Fault.in(folder)
      survives(fault) {
        Workload.answer(Workload.shuffled(cluster.sc)((_, _) => ())) { (partition, record) =>
          if (partition == run % Workload.Reducers && record == 100) fault.killSelf()
        }
      }
    }
  }

  test("in a SQL join and aggregate") {
    Soak.repeat(s"executor killed in a SQL join$by") { run =>
      val fault = Fault.in(folder)
      val trap = 1000L * run + 7
      val trapped = udf { (id: Long) => if (id == trap) fault.killSelf(); id }
      survives(fault, expected = (0L until 500L).map(k => (k, 80L, 80L * k + 500 * 3160)).toSet) {
        val spark = cluster.spark
        val left = spark.range(0, 40000, 1, 8)
          .select((trapped(col("id")) % 500).as("k"), col("id"))
          .repartition(8, col("k"))
        val right = spark.range(0, 500, 1, 4).select(col("id").as("r"))
        left
          .join(right.hint("merge"), col("k") === col("r"))
          .groupBy("k")
          .agg(count("*"), sum("id"))
          .collect()
          .map(row => (row.getLong(0), row.getLong(1), row.getLong(2)))
          .toSet
      }
    }
  }

  private def survives(fault: Fault): (=> Workload.Answer) => Int =
    survives(fault, Workload.expected)

  private def survives[T](fault: Fault, expected: T)(job: => T): Int = {
    cluster.awaitExecutors()
    val (answer, bytes) = cluster.counted(getClass.getSimpleName)(job)
    assert(fault.happened)
    Soak.killed(fault.killed)
    assert(answer === expected)
    afterFault()
    bytes.failedTasks
  }

  private def afterFault(): Unit = {
    cluster.awaitExecutors()
    if (ManagerUnderTest.isZerohop) cluster.assertNothingHeldOfTheDead()
    else SparkInternals.shuffleIds(cluster.sc).foreach(SparkInternals.removeShuffle(cluster.sc, _))
  }
}

/** Executors of one node, which map each other's memory. */
@RunBy.Verify
@RunBy.Faults
class ExecutorLossSuite extends ExecutorLosses("peer")

/** As between nodes: owners send their blocks over Spark's connections. */
@RunBy.Faults
class SentLossSuite extends ExecutorLosses("sent")
