package io.zerohop.spark.faults

import io.zerohop.spark.support.RunBy

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
