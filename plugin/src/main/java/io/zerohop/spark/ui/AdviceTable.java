package io.zerohop.spark.ui;

import io.zerohop.spark.report.Advice;
import io.zerohop.spark.ui.UiSnapshot.AdviceLine;
import java.util.List;

/** What the doctor would say: what is to be mended in sight, all else folded away. */
final class AdviceTable {
  private static final List<String> WORST_FIRST = List.of("fail", "warn");

  private AdviceTable() {}

  static void render(final Html page, final List<AdviceLine> all) {
    if (all.isEmpty()) {
      return;
    }
    page.raw("<h4>What the doctor says</h4>");
    final List<AdviceLine> mend =
        WORST_FIRST.stream()
            .flatMap(
                verdict -> all.stream().filter(line -> line.advice().verdict().equals(verdict)))
            .toList();
    if (mend.isEmpty()) {
      page.raw("<p class=\"note\">Nothing is to be mended in what was looked at.</p>");
    } else {
      table(page, "zerohop-doctor", mend);
    }
    page.raw(
        "<details><summary>All that was looked at</summary><p class=\"note\">Settings and jars");
    page.raw(" of the driver, and limits of executors, which only say what is to be mended. The");
    page.raw(" doctor itself looks at GPUs, UCX and rates, too (docs/doctor.md).</p>");
    table(page, "zerohop-doctor-all", all);
    page.raw("</details>");
  }

  private static void table(final Html page, final String id, final List<AdviceLine> lines) {
    page.table(id, "Verdict", "Check", "Found", "What mends it", "Where");
    for (final AdviceLine line : lines) {
      final Advice advice = line.advice();
      page.raw("<tr>").cell(advice.verdict()).cell(advice.check()).cell(advice.what());
      page.cell(advice.mend()).cell(line.count(), where(line)).raw("</tr>");
    }
    page.endTable();
  }

  private static String where(final AdviceLine line) {
    final int more = line.count() - line.processes().size();
    return String.join(", ", line.processes()) + (more > 0 ? " and " + more + " more" : "");
  }
}
