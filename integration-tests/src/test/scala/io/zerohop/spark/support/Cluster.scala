package io.zerohop.spark.support

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.sql.SparkSession
import org.apache.spark.zerohop.SparkInternals

/**
 * A real local-cluster: executors are JVMs of their own. Owns the Spark session; one at a time.
 *
 * @param executors how many, with one core each
 * @param master a standalone master with as many workers, or none for a local-cluster
 * @param shape what it has before `settings`: small and quick, or only what it cannot do without
 * @param await whether to wait for the executors, where idle ones are not let go meanwhile
 * @param elsewhere whether executors run on hosts whose processes are not seen here
 */
final class Cluster(
    val executors: Int,
    settings: Map[String, String],
    master: Option[String] = None,
    shape: Map[String, String] = Cluster.Small,
    await: Boolean = true,
    elsewhere: Boolean = false)
    extends AutoCloseable {
  val spark: SparkSession = {
    val conf = new SparkConf()
      .setMaster(master.getOrElse(s"local-cluster[$executors,1,1024]"))
      .setAppName("zerohop-faults")
      .setAll(shape ++ settings)
    SparkSession.builder().config(conf).getOrCreate()
  }

  val sc: SparkContext = spark.sparkContext

  if (await) awaitExecutors()

  /**
   * Waits until as many executors as asked for have run a task, replacements included. An executor
   * registers, and is sent blocks, before Spark 4 has given it its shuffle manager; what comes that
   * early spoils it for good.
   */
  def awaitExecutors(): Unit =
    Bounded.until(s"$executors executors", 90.seconds) {
      val ids = SparkInternals.executorIds(sc).toSet
      ids.size == executors && (elsewhere || pids.keySet == ids) && working() == ids
    }

  /** Executors that take tasks. */
  private def working(): Set[String] = onEach("a task on every executor")(() => ()).keySet

  /** What `ask` returns in each executor, by executor id; asked there as often as it has tasks. */
  def onEach[T](what: String)(ask: () => T): Map[String, T] = {
    val answers = sc.parallelize(0 until executors * 8, executors * 8).map { _ =>
      Thread.sleep(20)
      (SparkEnv.get.executorId, ask())
    }
    run(what)(answers.collect()).toMap
  }

  /** How the driver's URL ends: clusters side by side may give applications the same id. */
  private def driver: String = s":${sc.getConf.get("spark.driver.port")}"

  /** Process ids of the executors, by executor id. */
  def pids: Map[String, Long] = {
    val registered = SparkInternals.executorIds(sc).toSet
    Cluster.executorProcesses(sc.applicationId, driver).filter { case (id, _) => registered(id) }
  }

  /** SIGKILL. Returns when the process is gone, which the driver may not have noticed yet. */
  def kill(executorId: String): Unit = Cluster.kill(pids(executorId))

  /** Runs a job under a limit; an overdue job is cancelled after all stacks are written. */
  def run[T](what: String, limit: FiniteDuration = 120.seconds)(job: => T): T =
    try Bounded(what, limit)(job)
    finally sc.cancelAllJobs()

  /** Runs a job and returns with its result what its tasks reported. */
  def counted[T](what: String, limit: FiniteDuration = 120.seconds)(job: => T): (T, PathBytes) = {
    val bytes = new PathBytes
    // A listener is told of what happened before it came, if others have not heard of that yet.
    Cluster.drain(sc)
    sc.addSparkListener(bytes)
    try {
      val result = run(what, limit)(job)
      Cluster.drain(sc)
      (result, bytes)
    } finally sc.removeSparkListener(bytes)
  }

  /** A gauge of Zerohop's metrics, by executor; an executor that never shuffled has none. */
  def gauges(name: String): Map[String, Long] =
    onEach(s"gauge $name")(() => SparkInternals.gauge("zerohop", name)).collect {
      case (executor, Some(value)) => (executor, value)
    }

  /**
   * Drops every shuffle and asserts that no executor keeps a byte or a lease of one. Spark tells
   * only registered block managers to drop one: an executor that somebody took for dead, and that
   * lives, has none until its next heartbeat.
   *
   * @param anyGone whether all executors that have shuffled may have left; who has not holds nothing
   */
  def assertNothingHeld(anyGone: Boolean = false): Unit = {
    Bounded.until("block managers of all executors", 60.seconds) {
      SparkInternals.executorIds(sc).toSet.subsetOf(SparkInternals.blockManagerIds(sc))
    }
    SparkInternals.shuffleIds(sc).foreach(SparkInternals.removeShuffle(sc, _))
    for (name <- Seq("leases.open", "pool.used.bytes")) {
      var last = Map.empty[String, Long]
      Leftover.unless(s"$name back to 0, now $last") {
        last = gauges(name)
        (last.nonEmpty || anyGone) && last.values.forall(_ == 0)
      }
    }
  }

  /** The same after executors were killed: nor does a survivor hold anything of theirs. */
  def assertNothingHeldOfTheDead(anyGone: Boolean = false): Unit = {
    assertNothingHeld(anyGone)
    if (!elsewhere) new Survivors(sc, pids.values).assertNothingOfTheDead()
  }

  override def close(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }
}

object Cluster {

  /** What executors must have on a small machine; all else is as users find it. */
  val Plain: Map[String, String] = Map(
    "spark.executor.memory" -> "512m",
    "spark.executor.extraJavaOptions" ->
      s"-Dzerohop.test.target=${sys.props("zerohop.test.target")}")

  /** Few tasks, small pools that fill, and no patience with what is dead, for quick tests. */
  val Small: Map[String, String] = Plain ++ Map(
    "spark.zerohop.pool.size" -> "256m",
    "spark.zerohop.segment.size" -> "32m",
    "spark.zerohop.write.buffer" -> "4m",
    "spark.default.parallelism" -> "8",
    "spark.sql.shuffle.partitions" -> "8",
    "spark.locality.wait" -> "0",
    "spark.shuffle.io.maxRetries" -> "1",
    "spark.shuffle.io.retryWait" -> "200ms",
    "spark.deploy.maxExecutorRetries" -> "-1",
    "spark.task.maxFailures" -> "8")

  def withCluster[T](executors: Int, settings: (String, String)*)(body: Cluster => T): T = {
    val cluster = new Cluster(executors, settings.toMap)
    try body(cluster)
    finally cluster.close()
  }

  /**
   * Executor JVMs of an application that still run, whoever started them, by executor id.
   *
   * @param driver how the URL of their driver ends
   */
  def executorProcesses(applicationId: String, driver: String = ""): Map[String, Long] =
    executorCommands.collect {
      case command if command.application == applicationId && command.driver.endsWith(driver) =>
        command.executor -> command.pid
    }.toMap

  /** The same of the other executors of the application whose executor calls. */
  def otherExecutors: Map[String, Long] = {
    val self = executorCommands.find(_.pid == ProcessHandle.current.pid).getOrElse(
      throw new IllegalStateException("the calling process is no executor"))
    executorProcesses(self.application, self.driver) - self.executor
  }

  /**
   * Executors of this host by their command lines, which a process loses when it is killed. What an
   * executor starts has its command line for a moment, so the eldest comes last, for maps by id.
   */
  private def executorCommands: Seq[ExecutorCommand] =
    ProcessHandle.allProcesses.iterator.asScala.flatMap(handle => HostProcess.of(handle.pid)).toSeq
      .sortBy(-_.start).flatMap { process =>
        val words = HostProcess.words(process.pid)
        def after(word: String): Option[String] = words.drop(words.indexOf(word) + 1).headOption
          .filter(_ => words.contains(word))
        for {
          executor <- after("--executor-id")
          application <- after("--app-id")
        } yield ExecutorCommand(
          process.pid,
          executor,
          application,
          after("--driver-url").getOrElse(""))
      }

  private final case class ExecutorCommand(
      pid: Long,
      executor: String,
      application: String,
      driver: String)

  /** SIGKILL to all at once; returns when none of them runs any more. */
  def kill(pids: Long*): Unit = {
    val victims = pids.flatMap(HostProcess.of(_))
    victims.foreach(_.kill())
    Bounded.until(
      s"end of killed processes: ${victims.filter(_.lives).map(_.describe)}",
      20.seconds)(victims.forall(!_.lives))
  }

  /** SIGSTOP, and SIGCONT after so long, by a shell that lives on if the caller is stopped. */
  def pause(pid: Long, seconds: Int): Unit = {
    val resume = s"kill -STOP $pid; (sleep $seconds; kill -CONT $pid) > /dev/null 2>&1 &"
    val stopped = new ProcessBuilder("sh", "-c", resume).start().waitFor()
    if (stopped != 0) throw new IllegalStateException(s"process $pid was not stopped")
  }

  private def drain(sc: SparkContext): Unit = SparkInternals.awaitListeners(sc)
}
