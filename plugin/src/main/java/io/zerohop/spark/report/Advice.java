package io.zerohop.spark.report;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.zerohop.device.Message;

/**
 * A finding of the doctor as it travels in reports and event logs. Immutable.
 *
 * <p>A log of an earlier release has neither {@code code} nor {@code where}: there the code ends
 * the sentence in {@code what}, and stays there. The remedy keeps its name {@code mend} in logs, so
 * that releases read each other's; for the same reason the fields of the message are not nested.
 *
 * @param check what was looked at
 * @param verdict {@code ok}, {@code skip}, {@code warn} or {@code fail}
 * @param code by which docs/runbook.md explains it, such as {@code ZH-1001}; empty if there is none
 * @param what was found, in one sentence
 * @param where it was found: a device, peer or path; empty if the whole process is meant
 * @param remedy the key to set or the command to run; empty if there is nothing to do
 */
public record Advice(
    String check,
    String verdict,
    String code,
    String what,
    String where,
    @JsonProperty("mend") String remedy) {

  /** Takes what an older release has not written for empty. */
  public Advice {
    code = code == null ? "" : code;
    where = where == null ? "" : where;
  }

  public static Advice of(final String check, final String verdict, final Message message) {
    return new Advice(
        check, verdict, message.code(), message.reasoned(), message.where(), message.remedy());
  }
}
