package io.zerohop.workload

import java.nio.file.Files
import java.util.Optional

import scala.jdk.CollectionConverters._

import io.zerohop.spark.support.RunBy
import org.apache.spark.sql.Row
import org.scalatest.funsuite.AnyFunSuite

/** The comparison of a query's rows finds what differs, and nothing else. */
@RunBy.Verify
class AnswerSuite extends AnyFunSuite {
  private val tenth = new java.math.BigDecimal("0.10")
  private val rows = Seq(
    Row("a", 1L, tenth, 1.5), Row("b", null, tenth, 1e300), Row("b", null, tenth, -0.25))

  test("rows in another order are equal") {
    assert(differences(rows, rows.reverse) === Nil)
    assert(answer(rows).checksum === answer(rows.reverse).checksum)
  }

  test("a row that differs is shown from both sides") {
    val found = differences(rows, Row("a", 2L, tenth, 1.5) +: rows.tail)
    assert(found === Seq("only expected: a\t1\t0.10\t\\D1.5", "only here: a\t2\t0.10\t\\D1.5"))
  }

  test("a row that is missing or comes twice differs") {
    assert(differences(rows, rows.tail).map(_.takeWhile(_ != ':')) === Seq("only expected"))
    assert(differences(rows, rows.head +: rows).map(_.takeWhile(_ != ':')) === Seq("only here"))
  }

  test("a double may differ by 1e-9 of its value and not by more") {
    def changed(factor: Double) =
      rows.map(row => Row(row(0), row(1), row(2), row.getDouble(3) * factor))
    assert(differences(rows, changed(1 + 1e-11)) === Nil)
    assert(differences(rows, changed(1 + 1e-7)).size === 2 * rows.size)
  }

  test("an infinite double is close to itself alone") {
    val infinite = Seq(Row(Double.PositiveInfinity))
    assert(differences(infinite, infinite) === Nil)
    assert(differences(infinite, Seq(Row(1.0))).size === 2)
    assert(differences(Seq(Row(Double.NaN)), Seq(Row(Double.NaN))) === Nil)
  }

  test("a decimal's scale and last digit count") {
    assert(differences(Seq(Row(tenth)), Seq(Row(new java.math.BigDecimal("0.1")))).size === 2)
    assert(differences(Seq(Row(tenth)), Seq(Row(new java.math.BigDecimal("0.11")))).size === 2)
  }

  test("a text that looks like null or a double is neither") {
    assert(differences(Seq(Row(null)), Seq(Row("\\N"))).size === 2)
    assert(differences(Seq(Row(1.5)), Seq(Row("\\D1.5"))).size === 2)
  }

  test("what was written is read again") {
    val file = Files.createTempFile("answer", ".gz")
    try {
      val odd = rows :+ Row("tab\tline\nback\\slash", 0L, null, Double.NaN)
      answer(odd).write(file)
      val read = Answer.read(file)
      assert(read.rows === odd.size)
      assert(read.checksum === answer(odd).checksum)
      assert(read.differences(answer(odd)).asScala === Nil)
    } finally Files.delete(file)
  }

  // Sorted by the second column, and cut after four rows.
  private val limit = new SortedLimit(4, java.util.List.of(Int.box(1)))
  private val top = Seq(Row("a", 9, 0.5), Row("b", 7, 1.5), Row("c", 5, 2.5), Row("d", 5, 3.5))

  test("rows that tie with the last one may be any") {
    assert(tied(top, top.take(2) ++ Seq(Row("e", 5, 9.5), Row("c", 5, 2.5))) === Nil)
    assert(cut(top).tied === 2)
    assert(cut(top).checksum === cut(top.take(2) ++ Seq(Row("e", 5, 9.5),
      Row("f", 5, 1.0))).checksum)
  }

  test("rows before those that tie must be equal") {
    val other = Seq(Row("a", 9, 0.5), Row("x", 7, 1.5)) ++ top.drop(2)
    assert(tied(top, other) === Seq("only expected: b\t7\t\\D1.5", "only here: x\t7\t\\D1.5"))
    assert(cut(top).checksum !== cut(other).checksum)
  }

  test("as many rows must tie, with the same key") {
    assert(tied(top, top.take(2) ++ Seq(Row("c", 6, 2.5), Row("d", 5, 3.5))).nonEmpty)
    assert(tied(top, top.take(2) ++ Seq(Row("c", 4, 2.5), Row("d", 4, 3.5))).nonEmpty)
    assert(tied(top, top.take(3)).nonEmpty)
    assert(tied(top, top :+ Row("e", 5, 4.5)).nonEmpty)
  }

  test("rows tie only where the limit was reached") {
    val three = top.take(3)
    assert(cut(three).tied === 0)
    assert(tied(three, top.take(2) :+ Row("e", 5, 9.5)).size === 2)
  }

  test("a query that is not known to cut ties is compared to its last row") {
    assert(differences(top, top.take(3) :+ Row("e", 5, 9.5)).size === 2)
    assert(differences(top, cut(top.take(3) :+ Row("e", 5, 9.5))).size === 2)
  }

  test("a key that is a double ties within its last digits") {
    val byDouble = new SortedLimit(2, java.util.List.of(Int.box(1), Int.box(0)))
    def two(last: Double) =
      Answer.of(Optional.of(byDouble), Seq(Row(1, 2.5, "a"), Row(1, last, "b")).asJava)
    assert(two(1.0).differences(two(1.0 + 1e-12)).isEmpty)
    assert(!two(1.0).differences(two(1.0 + 1e-6)).isEmpty)
  }

  test("the rows of a higher limit tell whether the limit cuts ties") {
    assert(limit.cutsTies((top :+ Row("e", 5, 0.0)).asJava))
    assert(!limit.cutsTies((top :+ Row("e", 4, 0.0)).asJava))
    assert(!limit.cutsTies(top.asJava))
  }

  test("what may tie is written and read again") {
    val file = Files.createTempFile("answer", ".gz")
    try {
      for (rows <- Seq(top, Seq.fill(4)(Row("tab\tand \\", null, Double.NaN)))) {
        cut(rows).write(file)
        assert(Answer.read(file).checksum === cut(rows).checksum)
        assert(Answer.read(file).tied === cut(rows).tied)
        assert(Answer.read(file).differences(cut(rows)).isEmpty)
      }
    } finally Files.delete(file)
  }

  private def answer(rows: Seq[Row]): Answer = Answer.of(rows.asJava)

  private def cut(rows: Seq[Row]): Answer = Answer.of(Optional.of(limit), rows.asJava)

  private def tied(expected: Seq[Row], here: Seq[Row]): Seq[String] =
    cut(here).differences(cut(expected)).asScala.toSeq

  private def differences(expected: Seq[Row], here: Answer): Seq[String] =
    here.differences(answer(expected)).asScala.toSeq

  private def differences(expected: Seq[Row], here: Seq[Row]): Seq[String] =
    answer(here).differences(answer(expected)).asScala.toSeq
}
