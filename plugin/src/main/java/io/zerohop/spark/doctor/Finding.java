package io.zerohop.spark.doctor;

import io.zerohop.spark.report.Advice;
import java.io.Serializable;

/**
 * One line of the doctor's report. Immutable.
 *
 * @param item what was looked at
 * @param what was found, in one sentence
 * @param mend what to do about it; empty if there is nothing to do
 */
public record Finding(Item item, Verdict verdict, String what, String mend)
    implements Serializable {

  static Finding ok(final Item item, final String what) {
    return new Finding(item, Verdict.OK, what, "");
  }

  static Finding skip(final Item item, final String why) {
    return new Finding(item, Verdict.SKIP, why, "");
  }

  static Finding warn(final Item item, final String what, final String mend) {
    return new Finding(item, Verdict.WARN, what, mend);
  }

  static Finding fail(final Item item, final String what, final String mend) {
    return new Finding(item, Verdict.FAIL, what, mend);
  }

  /**
   * A finding in the words of the product, whose messages name the mend behind their last
   * semicolon.
   *
   * @param otherwise the mend, should the message have none
   */
  static Finding said(
      final Item item, final Verdict verdict, final String message, final String otherwise) {
    final Advice parts = Advice.said(item.key(), verdict.key(), message);
    return new Finding(
        item, verdict, parts.what(), parts.mend().isEmpty() ? otherwise : parts.mend());
  }

  /** As it stands in reports to the driver. */
  Advice advice() {
    return new Advice(item.key(), verdict.key(), what, mend);
  }
}
