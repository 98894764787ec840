package io.zerohop.spark.gpu

import io.zerohop.cluster.ClusterException
import io.zerohop.spark.support.RunBy

/** A GPU mode that cannot work ends the application with one sentence, before it has executors. */
@RunBy.Gpu
class GpuRefusalSuite extends GpuSuite {
  private val authenticate = Map(
    "spark.authenticate" -> "true",
    "spark.authenticate.secret" -> "of-a-test")
  private val service = Map("spark.shuffle.service.enabled" -> "true")

  // The plugin that refuses comes first, so that a smoke run needs no RAPIDS.
  private val plugins = Map("spark.plugins" -> GpuHost.Plugins.split(',').reverse.mkString(","))

  for (mode <- Seq("CACHE_ONLY", "UCX")) {
    test(s"$mode with spark.authenticate") {
      refused(mode, authenticate,
        "RAPIDS hands out no GPU batches while spark.authenticate is on [ZH-5022]")
    }

    test(s"$mode with the external shuffle service") {
      refused(mode, service,
        "the external shuffle service cannot serve blocks in executors' memory; set" +
          " spark.shuffle.service.enabled=false to use Zerohop [ZH-1002]")
    }
  }

  private def refused(mode: String, settings: Map[String, String], reason: String): Unit = {
    val forced = Map("spark.rapids.shuffle.mode" -> mode)
    val application = GpuApplication.submit("refused", plugins ++ forced ++ settings)
    try {
      val ended = intercept[ClusterException](application.await())
      assert(ended.getMessage.contains("ended with status 1"))
      val sentence = s"spark.rapids.shuffle.mode=$mode cannot work with Zerohop (remove that" +
        s" setting, or what is in its way): $reason"
      assert(application.logged.linesIterator.exists(_.endsWith(sentence)), application.log)
    } finally application.close()
  }
}
