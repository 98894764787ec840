package io.zerohop.workload

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.Row
import org.scalatest.funsuite.AnyFunSuite

/** The comparison of a query's rows finds what differs, and nothing else. */
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
    def changed(factor: Double) = rows.map(row => Row(row(0), row(1), row(2), row.getDouble(3) * factor))
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

  private def answer(rows: Seq[Row]): Answer = Answer.of(rows.asJava)

  private def differences(expected: Seq[Row], here: Seq[Row]): Seq[String] =
    answer(here).differences(answer(expected)).asScala.toSeq
}
