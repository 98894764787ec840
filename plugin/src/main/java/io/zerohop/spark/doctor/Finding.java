package io.zerohop.spark.doctor;

import java.io.Serializable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One line of the doctor's report. Immutable.
 *
 * @param item what was looked at
 * @param what was found, in one sentence
 * @param mend what to do about it; empty if there is nothing to do
 */
public record Finding(Item item, Verdict verdict, String what, String mend)
    implements Serializable {

  /** What a message ends with, by which docs/runbook.md explains it. */
  private static final Pattern CODE = Pattern.compile(" \\[ZH-\\d+]$");

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
    final Matcher coded = CODE.matcher(message);
    final String code = coded.find() ? coded.group() : "";
    final String text = message.substring(0, message.length() - code.length());
    final int at = text.lastIndexOf("; ");
    return at < 0
        ? new Finding(item, verdict, message, otherwise)
        : new Finding(item, verdict, text.substring(0, at) + code, text.substring(at + 2));
  }
}
