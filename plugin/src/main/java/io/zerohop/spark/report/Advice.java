package io.zerohop.spark.report;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A line of what the doctor would say, as it travels in reports. Immutable.
 *
 * @param check what was looked at
 * @param verdict {@code ok}, {@code skip}, {@code warn} or {@code fail}
 * @param what was found, in one sentence
 * @param mend what to do about it; empty if there is nothing to do
 */
public record Advice(String check, String verdict, String what, String mend) {

  /** What a message ends with, by which docs/runbook.md explains it. */
  private static final Pattern CODE = Pattern.compile(" \\[ZH-\\d+]$");

  /**
   * Advice in the words of the product, whose messages name the mend behind their last semicolon.
   */
  public static Advice said(final String check, final String verdict, final String message) {
    final Matcher coded = CODE.matcher(message);
    final String code = coded.find() ? coded.group() : "";
    final String text = message.substring(0, message.length() - code.length());
    final int at = text.lastIndexOf("; ");
    return at < 0
        ? new Advice(check, verdict, message, "")
        : new Advice(check, verdict, text.substring(0, at) + code, text.substring(at + 2));
  }
}
