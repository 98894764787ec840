package io.zerohop.spark.operation

import scala.concurrent.duration._

import io.zerohop.spark.suites.ManagerUnderTest
import io.zerohop.spark.support.{Bounded, Http, RunBy}
import org.apache.spark.{HashPartitioner, SparkConf, SparkContext}
import org.scalatest.funsuite.AnyFunSuite

/** An application whose settings keep Zerohop away still says in its UI why that is. */
@RunBy.Ui
class SteppedAsideSuite extends AnyFunSuite {

  test("the tab of an application that Zerohop leaves to Spark says why, and what mends it") {
    assume(ManagerUnderTest.isZerohop, "the tab is Zerohop's")
    withContext("spark.shuffle.service.enabled" -> "true") { sc =>
      shuffle(sc)
      Bounded.until("the doctor is not heard", 40.seconds)(page(sc).contains("zerohop-doctor"))
      val row = "<td[^>]*>fail</td><td[^>]*>steps-aside</td>.*?</tr>".r.findFirstIn(page(sc))
      assert(row.exists(_.contains("spark.shuffle.service.enabled=false")), page(sc))
    }
  }

  test("who has switched Zerohop off has no tab") {
    assume(ManagerUnderTest.isZerohop, "the tab is Zerohop's")
    withContext("spark.zerohop.enabled" -> "false") { sc =>
      shuffle(sc)
      assert(!page(sc).contains("GPU Shuffle"))
    }
  }

  private def withContext(setting: (String, String))(test: SparkContext => Unit): Unit = {
    val sc = new SparkContext(
      new SparkConf()
        .setMaster("local[2]")
        .setAppName("zerohop-aside")
        .set("spark.ui.enabled", "true")
        .set("spark.ui.port", "0")
        .set(setting._1, setting._2))
    try test(sc)
    finally sc.stop()
  }

  private def shuffle(sc: SparkContext): Unit = {
    val rows = sc.parallelize(0 until 100, 2).map(row => (row, row))
    assert(rows.partitionBy(new HashPartitioner(3)).count() === 100)
    ()
  }

  private def page(sc: SparkContext): String = Http.get(sc.uiWebUrl.get + "/zerohop/")
}
