package io.zerohop.spark.gpu

import java.io.File
import java.nio.file.{Files, Path, Paths}

import scala.concurrent.duration._

import io.zerohop.spark.faults.{Fault, Workload}
import io.zerohop.spark.rapids.RapidsShuffle
import io.zerohop.spark.support.{Bounded, Cluster, ExecutorMemory, PathBytes}
import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.zerohop.SparkInternals

/** Faults in the middle of a [[FaultyQuery]], by name. Each leaves the cluster as good as new. */
final class FaultScenarios(cluster: Cluster, rows: Long = FaultyQuery.Rows) {
  import FaultScenarios._

  private val query = new FaultyQuery(cluster.spark, rows)
  private val cancellation = new Cancellation(cluster, query)
  private lazy val folder: Path = Files.createTempDirectory("zerohop-faults")

  val all: Scenarios = faults(rows / 2, rows - 1, query.rowsPerMap)

  /** Numbers that tasks compare with, which would take all of this along as fields. */
  private def faults(middle: Long, last: Long, perMap: Long): Scenarios = Map(
    "killed_in_write" -> (() =>
      survives { fault =>
        query.frame(onWrite = id => if (id == middle) fault.killSelf())
      }),
    "owner_killed_in_read" -> (() =>
      survives { fault =>
        query.frame(onRead = _ => if (isFirstReducer) fault.killOthers())
      }),
    "reader_killed_in_read" -> (() =>
      survives { fault =>
        query.frame(onRead = _ => if (isFirstReducer) fault.killSelf())
      }),
    "failed_before_commit" -> (() =>
      survives { fault =>
        query.frame(maps = 1, onWrite = id => if (id == last) failNow(fault))
      }),
    "failed_after_commit" -> (() =>
      survives { fault =>
        query.frame(maps = 1, onWrite = id => if (id == last) failInTheEnd(fault))
      }),
    "output_lost" -> (() => betweenStages(forget)),
    "owner_killed_kept" -> (() => kept(() => killYoungest())),
    "owner_killed_in_read_kept" -> (() => kept(inRead = _.killOthers())),
    "owner_killed_kept_in_files" -> (() => kept(() => killedAndWritten())),
    "reader_killed_in_read_kept" -> (() => kept(inRead = _.killSelf())),
    "given_back" -> (() => givenBack()),
    "header_damaged" -> (() => ofPackedTables(betweenStages(damageHeaders))),
    "block_damaged" -> (() => betweenStages(damageBlocks)),
    "packed_block_damaged" -> (() => ofPackedTables(betweenStages(damageBlocks))),
    "cancelled_in_write" -> (() =>
      cancellation.facts(newFault()) { fault =>
        query.frame(onWrite = id => if (id % perMap > perMap / 2) linger(fault))
      }),
    "cancelled_in_read" -> (() =>
      cancellation.facts(newFault()) { fault =>
        query.frame(onRead = _ => linger(fault))
      }),
    // By the application alone: these need no process and no file of the executors' hosts.
    "halted_in_write" -> (() =>
      survives(_ => query.frame(onWrite = id => if (id == middle) haltFirst()))),
    "halted_in_read" -> (() =>
      survives(_ => query.frame(onRead = id => if (id == middle) haltFirst()))),
    "attempted_twice" -> (() =>
      survives(_ => query.frame(onRead = id => if (id == middle) lagFirst()))),
    "executor_taken" -> (() =>
      betweenStages((_, owner) => leaves(owner)(cluster.sc.killExecutors(Seq(owner))))),
    "executor_decommissioned" -> (() =>
      betweenStages((_, owner) => leaves(owner)(SparkInternals.decommission(cluster.sc, owner)))))

  private def newFault(): Fault = {
    cluster.awaitExecutors()
    query.expected // So that what it does is not counted with the fault.
    cluster.assertNothingHeld()
    Fault.in(folder)
  }

  private def survives(faulty: Fault => DataFrame): Map[String, Any] = {
    val fault = newFault()
    val before = SparkInternals.executorIds(cluster.sc)
    val frame = faulty(fault)
    val (answer, seen) = cluster.counted("a query with a fault")(query.answer(frame))
    afterFault()
    outcome(answer, seen) ++ Exchanges.facts(frame) ++ Map(
      "happened" -> fault.happened,
      "killed" -> fault.killed,
      "victims" -> fault.victims,
      "lost_executors" -> before.diff(SparkInternals.executorIds(cluster.sc)).size,
      "pool_then" -> fault.note.fold(0L)(Moment.parse(_).poolBytes))
  }

  /** @param harm does something to a shuffle's map outputs in one executor; false if it cannot */
  private def betweenStages(harm: (Int, String) => Boolean): Map[String, Any] = {
    newFault()
    withoutAdaptiveExecution {
      val rows = query.frame().rdd
      val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, rows))
      val happened = harm(id, SparkInternals.mapOutputOwners(id).max)
      val (answer, seen) = cluster.counted("reduce stage")(sorted(rows))
      afterFault()
      outcome(answer, seen) ++ gpuExchanges(rows) + ("happened" -> happened)
    }
  }

  /** Adaptive execution would not let anybody in between the stages. */
  private def withoutAdaptiveExecution[T](body: => T): T = {
    cluster.spark.conf.set("spark.sql.adaptive.enabled", "false")
    try body
    finally cluster.spark.conf.unset("spark.sql.adaptive.enabled")
  }

  private def sorted(rows: RDD[Row]): Seq[String] = rows.collect().map(_.toString).sorted.toSeq

  private def gpuExchanges(rows: RDD[Row]): Map[String, Any] = Map("gpu_exchanges" ->
    (if (RapidsShuffle.isGpuShuffle(SparkInternals.shuffleOf(rows))) 1 else 0))

  /** Map outputs that are all in a keeper lose executors before they are read, or meanwhile. */
  private def kept(
      before: () => Int = () => 0,
      inRead: Fault => Unit = _ => ()): Map[String, Any] = {
    val fault = newFault()
    withoutAdaptiveExecution {
      val rows = keptRows(query.frame(onRead = _ => if (isFirstReducer) inRead(fault)), 1)
      val killed = before()
      val (answer, seen) = cluster.counted("reduce stage")(sorted(rows))
      afterFault()
      outcome(answer, seen) ++ gpuExchanges(rows) ++ Map(
        "killed" -> (killed + fault.killed),
        "victims" -> fault.victims)
    }
  }

  /** Returns when the driver has noticed. */
  private def killYoungest(): Int = {
    val youngest = cluster.pids.keys.maxBy(_.toInt)
    cluster.kill(youngest)
    awaitGone(youngest, 30.seconds)
    1
  }

  /** Returns when its keeper has in files, and nowhere else, what it has left. */
  private def killedAndWritten(): Int = {
    val killed = killYoungest()
    Bounded.until("what it has left is in files", 60.seconds) {
      cluster.gauges("keeper.files.outputs").values.exists(_ > 0) &&
      cluster.gauges("keeper.left.bytes").values.forall(_ == 0)
    }
    killed
  }

  /** Dynamic allocation gives executors back after the map stage, and asks for others later. */
  private def givenBack(): Map[String, Any] = {
    val all = cluster.executors
    val perMap = query.rowsPerMap
    query.expected
    withoutAdaptiveExecution {
      val rows = keptRows(
        {
          val meeting = Meeting(Files.createTempDirectory(folder, "meeting").toString)
          query.frame(
            onWrite = id => if (id % perMap == 0) meeting.await(all),
            onRead = id => if (id < FaultyQuery.Keys) awaitAll(all))
        },
        all)
      val before = SparkInternals.executorIds(cluster.sc)
      Bounded.until("all executors but one are given back", 60.seconds) {
        SparkInternals.executorIds(cluster.sc).size == 1
      }
      val (answer, seen) = cluster.counted("reduce stage")(sorted(rows))
      val after = SparkInternals.executorIds(cluster.sc)
      cluster.assertNothingHeldOfTheDead(anyGone = true)
      outcome(answer, seen) ++ gpuExchanges(rows) ++ Map(
        "given_back" -> before.diff(after).size,
        "added" -> after.diff(before).size)
    }
  }

  /**
   * A query whose map stage has run, and whose outputs a keeper holds, all of so many executors or
   * more. What is committed before a keeper holds an executor's memory ends with the executor.
   */
  private def keptRows(frame: => DataFrame, owners: Int): RDD[Row] = {
    var rows = frame.rdd
    Bounded.until("a shuffle that is kept", 2.minutes) {
      rows = frame.rdd
      val id = cluster.run("map stage")(SparkInternals.runMapStage(cluster.sc, rows))
      val found = SparkInternals.mapOutputOwners(id)
      found.forall(_.startsWith("keeper-")) && found.toSet.size >= owners
    }
    rows
  }

  /** Their headers lie in host memory. */
  private def ofPackedTables[T](body: => T): T = {
    cluster.spark.conf.set(Kudo, "false")
    try body
    finally cluster.spark.conf.unset(Kudo)
  }

  /** An executor's outputs of a shuffle are gone, which the driver still knows. */
  private def forget(shuffleId: Int, victim: String): Boolean =
    cluster.onEach("lose map outputs") { () =>
      SparkEnv.get.executorId == victim && SparkInternals.forgetShuffle(shuffleId)
    }(victim)

  /** Where cudf's metadata is, and nothing but a checksum would notice. */
  private def damageHeaders(shuffleId: Int, victim: String): Boolean = {
    val memory = new ExecutorMemory(cluster.pids(victim))
    memory.damagePayloads(HeaderMagic, HeaderMetadata) +
      memory.damagePayloads(Workload.Marker, Workload.Marker.length / 2) > 0
  }

  /** Where kernels would believe what they read. */
  private def damageBlocks(shuffleId: Int, victim: String): Boolean = {
    val mapIds = SparkInternals.mapOutputsOf(shuffleId, victim)
    cluster.onEach("damage blocks") { () =>
      SparkEnv.get.executorId == victim && GpuDamage.flip(shuffleId, mapIds)
    }(victim)
  }

  /** The driver asks an executor to leave, and for another one when it has. */
  private def leaves(executor: String)(ask: => Boolean): Boolean = {
    val asked = ask
    awaitGone(executor, 90.seconds)
    asked && SparkInternals.requestExecutors(cluster.sc, cluster.executors)
  }

  private def awaitGone(executor: String, limit: FiniteDuration): Unit =
    Bounded.until(s"executor $executor gone", limit) {
      !SparkInternals.executorIds(cluster.sc).contains(executor)
    }

  private def afterFault(): Unit = {
    cluster.awaitExecutors()
    cluster.assertNothingHeldOfTheDead()
  }

  private def outcome(answer: Seq[String], seen: PathBytes): Map[String, Any] = Map(
    "equal" -> (answer == query.expected),
    "failed_tasks" -> seen.failedTasks,
    "fetch_failures" -> seen.fetchFailures.size,
    "fetch_failure" -> seen.fetchFailures.flatMap(_.linesIterator.take(1)).headOption.getOrElse(""),
    "task_failure" -> seen.otherFailures.headOption.getOrElse(""),
    "map_tasks" -> seen.finishedMapTasks,
    "speculative_tasks" -> seen.speculativeTasks,
    "removed_executors" -> seen.removedExecutors,
    "direct_bytes" -> Seq("local", "peer", "ucx", "sent").map(seen.bytes(_)).sum) ++ seen.facts
}

object FaultScenarios {
  type Scenarios = Map[String, () => Map[String, Any]]
  private val Kudo = "spark.zerohop.rapids.kudo.enabled"

  /** Of `TableHeader`; with rows there are none, and the marker of their payloads serves. */
  private val HeaderMagic = "ZJT1"

  /** Into the first table's metadata: behind the header's fixed part and that of the table. */
  private val HeaderMetadata = 16 + 24 + 20

  private val LagMillis = 30000

  private def isFirstReducer: Boolean = TaskContext.getPartitionId() == 0

  /** Ends the executor of a task's first attempt as SIGKILL does; the call does not return. */
  private def haltFirst(): Unit = if (isFirstAttempt) Runtime.getRuntime.halt(137)

  /** Slows the first attempt of a task down, until Spark ends it for the second. */
  private def lagFirst(): Unit = if (isFirstAttempt) Thread.sleep(LagMillis)

  private def isFirstAttempt: Boolean = {
    val task = TaskContext.get()
    task.attemptNumber() == 0 && task.stageAttemptNumber() == 0
  }

  /**
   * Holds tasks of a stage back until so many executors run some of them, or a minute has passed.
   * While tasks wait, dynamic allocation asks for more executors. To be there is not enough: an
   * executor that is being given back takes no task, and on a GPU it takes seconds to end.
   *
   * @param folder an empty one, which all executors see
   */
  private final case class Meeting(folder: String) {
    def await(executors: Int): Unit = {
      Files.write(Paths.get(folder, SparkEnv.get.executorId), Array.emptyByteArray)
      val end = 1.minute.fromNow
      while (met < executors && end.hasTimeLeft()) Thread.sleep(100)
    }

    private def met: Int = Option(new File(folder).list()).fold(0)(_.length)
  }

  /** Holds a task back until all executors are there, for which dynamic allocation asks meanwhile. */
  private def awaitAll(executors: Int): Unit = ClusterScenarios.awaitExecutors(_ >= executors)

  private def failNow(fault: Fault): Unit = fault.once(Moment.now().toString)(throwWanted())

  /** Fails the task when its output is published and its MapStatus not yet on its way. */
  private def failInTheEnd(fault: Fault): Unit = {
    TaskContext.get().addTaskCompletionListener[Unit] { _ =>
      fault.once(Moment.now().toString)(throwWanted())
    }
    ()
  }

  private def throwWanted(): Unit = throw new IllegalStateException("wanted by the test")

  /** Takes its time with every row, so that the query is found in its middle. */
  private def linger(fault: Fault): Unit = {
    fault.once(Moment.now().toString)(())
    Thread.sleep(1)
  }
}
