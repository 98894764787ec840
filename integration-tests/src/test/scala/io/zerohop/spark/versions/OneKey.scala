package io.zerohop.spark.versions

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import io.zerohop.spark.support.RunBy
import org.scalatest.funsuite.AnyFunSuite

/** Applications on a cluster that name only the plugin; all else is at its default. */
abstract class OneKey extends AnyFunSuite with NeedsSparkHome {
  private val Ours = "io.zerohop.spark.ZerohopPlugin"
  private val Choosing = classOf[OneKeyApp.ChoosingPlugin].getName
  private val Manager = "io.zerohop.spark.ZerohopShuffleManager"
  private val Sort = "org.apache.spark.shuffle.sort.SortShuffleManager"
  private val Code = "ZH-1006"

  /** Beside a plugin that chooses its own manager where none is set, as RAPIDS' does. */
  protected def testPluginAlone(home: SparkHome): Unit =
    if (choosesItself(home)) {
      test(s"the plugin alone is enough on $home") {
        run(home, s"$Choosing,$Ours").assertZerohop()
      }
    } else {
      test(s"the plugin alone is not enough on $home, and says so") {
        run(home, Ours).assertSort("before the plugins")
      }
    }

  protected def testOtherChoices(home: SparkHome): Unit = {
    test(s"a manager that the user set stays on $home, and a warning names it") {
      run(home, Ours, "spark.shuffle.manager" -> "sort").assertSort("is set to sort")
    }

    test(s"disabled, the plugin leaves sort shuffle in place on $home, without a word") {
      val ended = run(home, Ours, "spark.zerohop.enabled" -> "false")
      assert(ended.app("manager") === Sort)
      assert(ended.bytes === 0)
      assert(ended.warnings === Nil)
    }
  }

  /** Spark 3.5 makes the shuffle manager before the plugins. */
  private def choosesItself(home: SparkHome): Boolean = !home.version.startsWith("3.")

  private def run(home: SparkHome, plugins: String, more: (String, String)*): OneKeyRun = {
    requireHome(home)
    val conf = Map(
      "spark.master" -> "local-cluster[2,1,1024]",
      "spark.executor.memory" -> "512m",
      "spark.plugins" -> plugins) ++ more
    val disabled = conf.get("spark.zerohop.enabled").contains("false")
    val ended = SparkSubmitProcess.run(
      home,
      conf,
      classOf[OneKeyApp].getName,
      AppJar.path,
      if (disabled) Nil else Seq("tab"))
    assert(ended.exit === 0, s"see ${ended.log}")
    OneKeyRun(
      AppJar.report(ended.stdout, "one-key-app:"),
      AppJar.report(ended.stdout, "shuffle-app:"),
      Files.readAllLines(ended.log).asScala.toSeq.filter(_.contains(s"[$Code]")))
  }

  /** What an application has said, and its driver's warnings of another manager. */
  private case class OneKeyRun(
      app: Map[String, String],
      shuffles: Map[String, String],
      warnings: Seq[String]) {
    assert(shuffles("rdd") === "199990000")
    assert(shuffles("sum") === "4999950000")

    def bytes: Long = Seq("local", "peer").map(counted).sum

    def assertZerohop(): Unit = {
      assert(app === Map("manager" -> Manager, "tab" -> "none"))
      assert(bytes > 0)
      assert(counted("peer") > 0)
      assert(counted("staged") === 0)
      assert(warnings === Nil)
    }

    def assertSort(why: String): Unit = {
      assert(app === Map("manager" -> Sort, "tab" -> Code))
      assert(bytes === 0)
      assert(warnings.size === 1, warnings)
      for (part <- Seq(Sort, why, s"set spark.shuffle.manager=$Manager"))
        assert(warnings.head.contains(part))
    }

    private def counted(path: String): Long =
      shuffles.getOrElse(s"zerohop.$path.bytes", "0").toLong
  }
}

/** On the Spark that everything is built with. */
@RunBy.Verify
class OneKeySuite extends OneKey {
  testPluginAlone(SparkHomes.of("4.1.3"))
}

/** On all others, and what else may be chosen. */
@RunBy.Versions
class OneKeyOnEachSparkSuite extends OneKey {
  SparkHomes.all.filterNot(_.version == "4.1.3").foreach(testPluginAlone)
  testOtherChoices(SparkHomes.of("4.1.3"))
}
