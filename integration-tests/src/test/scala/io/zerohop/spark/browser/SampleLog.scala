package io.zerohop.spark.browser

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.util.{Random, Using}

/**
 * The event log of an application that never ran, as large as is asked for: so many executors, eight
 * a node, which read twelve rounds of shuffles. The same numbers each time.
 *
 * @param executors how many
 * @param gpu whether they hold blocks in GPU memory, with NVLink between those of a node
 * @param fallbacks whether pools are small, and some executors cannot be reached in the end
 */
final case class SampleLog(executors: Int, gpu: Boolean = false, fallbacks: Boolean = false) {
  private val Begin = 1795592518745L
  private val Rounds = 12
  private val PerNode = 8
  private val Leaving =
    "the owner did not send its blocks to this reader; one of them may be shutting down or paused: " +
      "an executor did not answer within 5000 ms"
  private val Name = "io.zerohop.spark.ui.ShuffleReportEvent"

  val application = s"app-of-$executors${if (fallbacks) "-with-fallbacks" else ""}"

  /** Writes it into a folder of the history server's. */
  def write(logs: Path): Unit = {
    val random = new Random(7)
    Using.resource(Files.newBufferedWriter(logs.resolve(application))) { out =>
      def line(text: String): Unit = { out.write(text); out.write('\n') }
      line("""{"Event":"SparkListenerLogStart","Spark Version":"4.1.3"}""")
      line(s"""{"Event":"SparkListenerApplicationStart","App Name":"$executors executors",""" +
        s""""App ID":"$application","Timestamp":$Begin,"User":"spark"}""")
      for (executor <- 0 until executors) line(added(executor))
      line(report("driver", "", 1000, "", "", "null", "", advice))
      for (round <- 0 until Rounds; executor <- 0 until executors) {
        line(reported(round, executor, random))
        line(taskEnd(round, executor, random))
      }
    }
  }

  private def host(executor: Int) = f"worker-${executor / PerNode + 1}%02d"

  private def added(executor: Int) =
    s"""{"Event":"SparkListenerExecutorAdded","Timestamp":$Begin,"Executor ID":"$executor",""" +
      s""""Executor Info":{"Host":"${host(executor)}","Total Cores":8,"Log Urls":{},""" +
      """"Attributes":{},"Resources":{},"Resource Profile Id":0}}"""

  private def advice = {
    val small =
      """,{"check":"sizes","verdict":"warn","what":"only 384 MiB of shared memory for shuffle """ +
        """blocks; what does not fit goes to files","code":"ZH-2001","mend":"for a pool of 512 """ +
        """MiB set spark.executor.memoryOverhead=2g"}"""
    """{"check":"spark","verdict":"ok","what":"Spark 4.1.3","mend":""}""" +
      (if (fallbacks) small else "")
  }

  private def report(
      executor: String,
      node: String,
      millis: Long,
      flows: String,
      shuffles: String,
      memory: String,
      contacts: String,
      advice: String) =
    s"""{"Event":"$Name","report":{"executorId":"$executor","node":"$node",""" +
      s""""timeMillis":${Begin + millis},"flows":[$flows],"shuffles":[$shuffles],""" +
      s""""memory":$memory,"contacts":[$contacts],"advice":[$advice]}}"""

  private def reported(round: Int, executor: Int, random: Random): String = {
    val moved = mutable.LinkedHashMap.empty[String, Long].withDefaultValue(0L)
    val blocks = mutable.Map.empty[String, Int].withDefaultValue(0)
    val unreached = Array(0L, 0L)
    // Where there are many executors each reads a twelfth of the others in a round.
    val owners = (0 until executors).filter(owner =>
      executors <= 40 || owner / PerNode == executor / PerNode ||
        (owner + round + executor) % Rounds == 0)
    val flows = owners.map { owner =>
      val bytes =
        ((0.6 + 0.8 * random.nextDouble()) * (1L << (if (gpu) 33 else 26))).toLong
      val (path, link, perSecond) = way(round, executor, owner, random)
      val millis = 10 * math.max(1, (bytes / perSecond * 100).toLong)
      val full = if (executors > 40 && millis < 50) 0 else math.max(0, millis - 20)
      moved(path) += bytes
      blocks(path) += 64
      if (path == "staged" && isLeaving(owner)) {
        unreached(0) += 64
        unreached(1) += bytes
      }
      s"""{"owner":"$owner","path":"$path","link":"$link","blocks":64,"bytes":$bytes,""" +
        s""""busyMillis":$millis,"fullBytes":${bytes * full / millis},"fullMillis":$full}"""
    }
    report(
      s"$executor",
      f"${executor / PerNode}%08x",
      5000L * (round + 1) + 3 * executor,
      flows.mkString(","),
      shuffle(round, executor, moved, blocks, unreached),
      memory(round, moved("staged")),
      if (round == 0) contacts(executor) else "",
      "")
  }

  private def way(round: Int, reader: Int, owner: Int, random: Random): (String, String, Double) =
    if (owner == reader) ("local", "local", if (gpu) 8e11 else 9e9)
    else if (fallbacks && (isLeaving(owner) || round > 8)) ("staged", "staged", 0.6e9)
    else if (owner / PerNode != reader / PerNode) ("sent", "sent", 1.1e9)
    else if (gpu) ("peer", "peer.nvlink", 2.1e11)
    else ("peer", "peer.host", (1.2 + 2.8 * random.nextDouble()) * 1e9)

  /** Whether an executor is leaving in an application with fallbacks. */
  private def isLeaving(executor: Int) = executor % 5 == 3

  private def shuffle(
      round: Int,
      executor: Int,
      moved: collection.Map[String, Long],
      blocks: collection.Map[String, Int],
      unreached: Array[Long]) = {
    val fallen = Seq(
      ("ZH-4085", Leaving, unreached(0), unreached(1)),
      (
        "ZH-6033",
        "the owner does not hold the blocks in memory",
        blocks("staged") - unreached(0),
        moved("staged") - unreached(1))).filter(_._3 > 0)
    def fell(value: ((String, String, Long, Long)) => String) =
      fallen.map(one => s""""${one._2}":${value(one)}""").mkString("{", ",", "}")
    val causes = fell { case (code, _, _, bytes) =>
      s"""{"code":"$code","remedy":"","bytes":$bytes}"""
    }
    val paths = moved.map { case (path, bytes) =>
      s""""$path":{"blocks":${blocks(path)},"bytes":$bytes}"""
    }
    s"""{"shuffleId":${1000 + 12 * round + executor % 12},"writers":[${2 * round}],""" +
      s""""readers":[${2 * round + 1}],"moved":{${paths.mkString(",")}},""" +
      s""""waitNanos":${1000000L * (20 + 15 * (executor % 12))},""" +
      s""""fallbacks":${fell(_._3.toString)},"causes":$causes}"""
  }

  private def memory(round: Int, staged: Long) = {
    val limit = if (fallbacks) 384L << 20 else 48L << 30
    s"""{"hostUsed":${math.min(limit, 300000000L * (round + 1))},"hostLimit":$limit,""" +
      s""""deviceUsed":${if (gpu) 1100000000L * (round + 1) else 0},""" +
      s""""deviceLimit":${if (gpu) 16L << 30 else 0},"files":$staged,"overflowed":0,""" +
      """"spilledToHost":0,"spilledToFiles":0}"""
  }

  private def contacts(executor: Int) = {
    val neighbours =
      (0 until executors).filter(o => o != executor && o / PerNode == executor / PerNode)
    val (link, expected) = if (gpu) ("peer.nvlink", 270000000000L) else ("peer.host", 2000000000L)
    neighbours
      .map(owner =>
        s"""{"owner":"$owner","how":"read in place, its memory is mapped here",""" +
          s""""link":"$link","expected":$expected}""")
      .mkString(",")
  }

  private def taskEnd(round: Int, executor: Int, random: Random) = {
    val ran = 4000
    val waited = if (fallbacks) 700 + random.nextInt(500) else 20 + random.nextInt(30)
    s"""{"Event":"SparkListenerTaskEnd","Stage ID":${2 * round + 1},"Stage Attempt ID":0,""" +
      """"Task Type":"ResultTask","Task End Reason":{"Reason":"Success"},"Task Info":{""" +
      s""""Task ID":${round * executors + executor},"Index":$executor,"Attempt":0,""" +
      s""""Launch Time":$Begin,"Executor ID":"$executor","Host":"${host(executor)}",""" +
      """"Locality":"ANY","Speculative":false,"Getting Result Time":0,""" +
      s""""Finish Time":${Begin + ran},"Failed":false,"Killed":false,"Accumulables":[]},""" +
      s""""Task Metrics":{"Executor Deserialize Time":0,"Executor Run Time":$ran,""" +
      """"Result Size":0,"JVM GC Time":0,"Result Serialization Time":0,""" +
      """"Memory Bytes Spilled":0,"Disk Bytes Spilled":0,"Shuffle Read Metrics":{""" +
      """"Remote Blocks Fetched":64,"Local Blocks Fetched":64,"Fetch Wait Time":""" +
      s"""$waited,"Remote Bytes Read":1,"Local Bytes Read":1,"Total Records Read":1}}}"""
  }
}
