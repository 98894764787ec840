package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Path;

/** The page, part by part. */
final class PageContent {
  private static final String STYLE =
      """
      <style>
        .zerohop td, .zerohop th { vertical-align: top; }
        .zerohop .heat { width: auto; }
        .zerohop .heat td { min-width: 7em; }
        .zerohop .heat .l1 { background: #eef3f8; color: #000; }
        .zerohop .heat .l2 { background: #cfe0ee; color: #000; }
        .zerohop .heat .l3 { background: #9cc3e0; color: #000; }
        .zerohop .heat .l4 { background: #5f9fcc; color: #000; }
        .zerohop svg { max-width: 100%; }
        .zerohop .note { color: #555; }
      </style>
      """;

  private PageContent() {}

  /** The content below Spark's header. */
  static String of(final UiSnapshot snapshot, final PageQuery query) {
    final Html page = new Html();
    page.raw(STYLE).raw("<div class=\"zerohop\">");
    if (snapshot.awaitsReports()) {
      page.raw(
          "<p id=\"zerohop-empty\">No executor has reported yet: reports begin with the first"
              + " task that writes or reads a shuffle through Zerohop.</p>");
    }
    if (snapshot.refused() > 0) {
      page.raw(
          "<p id=\"zerohop-refused\" class=\"note\">" + snapshot.refused() + " parts of reports");
      page.raw(
          " are left out: they are negative, too long or unknown, as no executor writes them.");
      page.raw("</p>");
    }
    AdviceTable.render(page, snapshot.advice());
    form(page, query);
    HeatMap.render(page, snapshot.pairs(), query);
    ShuffleTable.render(page, snapshot, query);
    MemoryTable.render(page, snapshot.memory(), snapshot.executorsLeftOut());
    contacts(page, snapshot);
    return page.raw("</div>").toString();
  }

  private static void form(final Html page, final PageQuery query) {
    page.raw("<form method=\"get\" id=\"zerohop-filter\"><label>Path <select name=\"path\">");
    option(page, "", "all", query);
    for (final Path path : Path.values()) {
      option(page, path.label(), path.label(), query);
    }
    page.raw("</select></label> <label>Shuffle, stage or reason <input type=\"text\" name=\"q\"");
    page.raw(" value=\"").text(query.text()).raw("\" /></label>");
    page.raw(" <button type=\"submit\">Filter</button> <a href=\"?\">Show all</a></form>");
  }

  private static void option(
      final Html page, final String value, final String shown, final PageQuery query) {
    page.raw("<option value=\"" + value + "\"");
    page.raw(query.path().equals(value) ? " selected=\"selected\">" : ">");
    page.raw(shown).raw("</option>");
  }

  private static void contacts(final Html page, final UiSnapshot snapshot) {
    page.raw("<h4>First contacts</h4>");
    if (snapshot.evictedContacts() > 0) {
      page.raw("<p class=\"note\">" + snapshot.evictedContacts() + " older ones are not kept.</p>");
    }
    page.table("zerohop-contacts", "Time", "Executor", "Reads executor", "How");
    for (final UiSnapshot.ContactLine line : snapshot.contacts()) {
      page.raw("<tr>").cell(line.timeMillis(), Times.clock(line.timeMillis()));
      page.cell(line.reader()).cell(line.owner()).cell(line.how()).raw("</tr>");
    }
    page.endTable();
  }
}
