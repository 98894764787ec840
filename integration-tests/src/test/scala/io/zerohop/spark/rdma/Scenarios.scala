package io.zerohop.spark.rdma

import java.nio.file.{Path, Paths}
import java.util.concurrent.ConcurrentHashMap

import scala.concurrent.duration._

import io.zerohop.spark.nodes.Transfer
import io.zerohop.spark.support.{Bounded, Cluster, PathBytes}
import org.apache.spark.zerohop.SparkInternals

/**
 * What may happen between two executors of two machines, each with the answer that it has to have.
 * Not for several threads.
 *
 * @param victim the machine that is struck, which is not the driver's
 * @param card its network card, which the adapter is made of
 */
final class Scenarios(cluster: Cluster, victim: String, card: String) {
  import Scenarios._

  private val all = Transfer(Records)
  private var markers = 0

  /** Runs one; returns what was counted. */
  def run(name: String): Map[String, Any] = {
    awaitExecutors()
    val counted = name match {
      case "rows" => rows()
      case "lossy" => lossy()
      case "down-and-up" => strikeInTheMiddle(downAndUp)
      case "killed-before" => killedBefore()
      case "killed-during" => strikeInTheMiddle(Strike.KillThisProcess, failures = true)
      case "killed-after" => killedAfter()
    }
    settle()
    if (name != "rows") goodAsNew()
    counted
  }

  private def rows(): Map[String, Any] = {
    val seen = transfer(newMarker())
    assert(byUcxAlone(seen), s"not all of it came by UCX: ${seen.facts}")
    facts(seen)
  }

  /** Of the packets between the machines, some are lost, both ways. */
  private def lossy(): Map[String, Any] = {
    everywhere(Strike(s"tc qdisc add dev $card root netem loss $LostPercent%"))
    try {
      val seen = transfer(newMarker())
      assert(seen.bytes(Ucx) > 0, seen.facts)
      facts(seen) + ("lost_percent" -> LostPercent)
    } finally everywhere(Strike(s"tc qdisc del dev $card root"))
  }

  private def downAndUp: Strike =
    Strike(s"ip link set $card down; sleep $DownSeconds; ip link set $card up")

  private def strikeInTheMiddle(strike: Strike, failures: Boolean = false): Map[String, Any] = {
    val marker = newMarker()
    arm(strike, marker)
    val seen = transfer(marker)
    assert(seen.failedTasks > 0 || !failures, "the executor that was killed was not missed")
    facts(seen)
  }

  /** What it has written is needed again, and has not been read by everybody. */
  private def killedBefore(): Map[String, Any] = {
    val shuffled = all.rdd(cluster.sc, newMarker())
    SparkInternals.runMapStage(cluster.sc, shuffled)
    arm(Strike.KillThisProcess, Now)
    Bounded.until("the end of the executor that is killed", Limit) {
      SparkInternals.executorIds(cluster.sc).size < Machines
    }
    val (answer, seen) = cluster.counted("read", Limit)(all.rows(shuffled))
    assertRight(answer)
    // Spark forgets them when it hears of the end, before anybody asks for them in vain.
    assert(seen.finishedMapTasks > 0, "outputs of the executor that was killed were not missed")
    facts(seen)
  }

  /** It has been read by everybody. */
  private def killedAfter(): Map[String, Any] = {
    val seen = transfer(newMarker())
    arm(Strike.KillThisProcess, Now)
    facts(seen)
  }

  private def transfer(marker: Path): PathBytes = {
    val (answer, seen) =
      cluster.counted("transfer", Limit)(all.rows(all.rdd(cluster.sc, marker)))
    assertRight(answer)
    seen
  }

  private def assertRight(answer: Seq[Transfer.Row]): Unit =
    assert(answer == all.expected, "rows are missing or wrong")

  /** The victim's executor strikes as soon as the file is there, on its machine. */
  private def arm(strike: Strike, marker: Path): Unit = {
    val (on, path, once) = (victim, marker.toString, newMarker().toString)
    onEachMachine(() =>
      if (Strike.machine == on && first(once)) strike.whenThereIs(Paths.get(path)))
  }

  private def everywhere(strike: Strike): Unit = {
    val once = newMarker().toString
    onEachMachine(() => if (first(once)) strike.now())
  }

  private def onEachMachine(body: () => Unit): Unit = {
    cluster.onEach("what is done on each machine")(body)
    ()
  }

  private def awaitExecutors(): Unit =
    Bounded.until(s"$Machines executors that work", Limit) {
      SparkInternals.executorIds(cluster.sc).size == Machines &&
      cluster.onEach("which machine it is on")(() => Strike.machine).values.toSet.size == Machines
    }

  private def settle(): Unit = {
    awaitExecutors()
    cluster.assertNothingHeld()
    Bounded.until("memory that was received in is given back", RequestTimeout) {
      cluster.gauges("receive.buffers").values.forall(_ == 0)
    }
  }

  /** Everything comes by UCX again, if not at once then soon. */
  private def goodAsNew(): Unit = {
    val patience = Limit.fromNow
    while (!byUcxAlone(transfer(newMarker()))) {
      assert(patience.hasTimeLeft(), "not all comes by UCX, as it did before")
    }
    settle()
  }

  private def byUcxAlone(seen: PathBytes): Boolean =
    seen.bytes(Ucx) > 0 && Seq("sent", "staged").forall(seen.bytes(_) == 0)

  private def facts(seen: PathBytes): Map[String, Any] =
    Map("failed_tasks" -> seen.failedTasks) ++ seen.facts

  private def newMarker(): Path = {
    markers += 1
    Paths.get(s"/tmp/marker-${cluster.sc.applicationId}-$markers")
  }
}

object Scenarios {
  private val Machines = 2
  private val Ucx = "ucx"
  private val Records = 512
  private val LostPercent = 2
  private val DownSeconds = 3
  private val Limit = 4.minutes

  /** The default of spark.zerohop.request.timeout. */
  private val RequestTimeout = 10.seconds

  /** There from the beginning. */
  private val Now = Paths.get("/proc")

  private val done = ConcurrentHashMap.newKeySet[String]()

  /** Whether this process is asked for the first time: several tasks of an executor come by. */
  private def first(what: String): Boolean = done.add(what)
}
