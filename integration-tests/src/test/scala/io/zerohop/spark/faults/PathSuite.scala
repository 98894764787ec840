package io.zerohop.spark.faults

import io.zerohop.spark.support.{PathBytes, RunBy}

/** The same answer whichever way the bytes go. */
@RunBy.Verify
class PathSuite extends AnswerOnClusters {

  test("with defaults every byte is read in place") {
    val bytes = runWith()
    onZerohop {
      assert(bytes.bytes("local") > 0)
      assert(bytes.bytes("peer") > 0)
      assert(bytes.bytes("staged") === 0)
    }
  }

  test("pool full: what does not fit becomes files") {
    val bytes = runWith("spark.zerohop.pool.size" -> "2m", "spark.zerohop.segment.size" -> "1m")
    onZerohop {
      assert(bytes.bytes("staged") > 0)
      assert(bytes.bytes("local") + bytes.bytes("peer") > 0)
    }
  }

  test("staged alone") {
    val bytes = runWith("spark.zerohop.paths" -> "staged")
    onZerohop {
      assert(bytes.bytes("staged") > 0)
      assert(bytes.bytes("local") + bytes.bytes("peer") === 0)
    }
  }

  test("local and staged, peer forbidden") {
    val bytes = runWith("spark.zerohop.paths" -> "local,staged")
    onZerohop {
      assert(bytes.bytes("local") > 0)
      assert(bytes.bytes("peer") === 0)
      assert(bytes.bytes("staged") > 0)
    }
  }

  private val Elsewhere = Seq(
    "spark.zerohop.paths" -> "local,sent,staged",
    "spark.shuffle.readHostLocalDisk" -> "false"
  )

  test("peer forbidden: what lies elsewhere is sent, at defaults") {
    assertSent(runWith(Elsewhere: _*))
  }

  test("peer forbidden, everything encrypted: sent under Spark's encryption") {
    assertSent(runWith(Elsewhere ++ Seq(
          "spark.authenticate" -> "true",
          "spark.authenticate.secret" -> "only a test",
          "spark.network.crypto.enabled" -> "true",
          "spark.io.encryption.enabled" -> "true"
        ): _*))
  }

  private def assertSent(bytes: PathBytes): Unit = onZerohop {
    assert(bytes.bytes("local") > 0)
    assert(bytes.bytes("sent") > 0)
    assert(bytes.bytes("peer") + bytes.bytes("staged") === 0)
  }

  test("files encrypted and the network not: nothing is sent in plain") {
    val bytes = runWith(Elsewhere :+ ("spark.io.encryption.enabled" -> "true"): _*)
    onZerohop {
      assert(bytes.bytes("sent") === 0)
      assert(bytes.bytes("staged") > 0)
    }
  }

  test("local and peer, staged forbidden") {
    val bytes = runWith("spark.zerohop.paths" -> "local,peer")
    onZerohop {
      assert(bytes.bytes("peer") > 0)
      assert(bytes.bytes("staged") === 0)
    }
  }

  test("disabled: everything is left to sort shuffle") {
    val bytes = runWith("spark.zerohop.enabled" -> "false")
    for (path <- Seq("local", "peer", "staged")) assert(bytes.bytes(path) === 0)
  }
}
