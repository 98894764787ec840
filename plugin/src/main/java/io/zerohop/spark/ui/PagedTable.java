package io.zerohop.spark.ui;

import io.zerohop.spark.ui.NodeMatrix.ExecutorOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.ObjLongConsumer;
import java.util.function.ToLongFunction;

/**
 * A table with pages, sorted by a click on a column, as in Spark's own tables. Both are part of the
 * page's URL, so it needs no script and has a limited size. Immutable.
 *
 * @param <T> a row
 */
final class PagedTable<T> {
  private final String id;
  private final List<Column<T>> columns = new ArrayList<>();

  /** A table without columns; its id is one of {@link PageQuery#TABLES}. */
  PagedTable(final String id) {
    this.id = id;
  }

  private record Column<T>(
      String title, String tip, Comparator<T> order, BiConsumer<Html, T> cell) {}

  /** Adds a column; the tip is empty where the title is clear. */
  PagedTable<T> column(
      final String title,
      final String tip,
      final Comparator<T> order,
      final BiConsumer<Html, T> cell) {
    columns.add(new Column<>(title, tip, order, cell));
    return this;
  }

  PagedTable<T> text(final String title, final String tip, final Function<T, String> words) {
    return column(
        title, tip, Comparator.comparing(words), (page, row) -> page.cell(words.apply(row)));
  }

  PagedTable<T> executor(final String title, final Function<T, String> id) {
    return column(
        title,
        "",
        Comparator.comparing(id, ExecutorOrder.INSTANCE),
        (page, row) -> page.cell(id.apply(row)));
  }

  PagedTable<T> number(
      final String title,
      final String tip,
      final ToLongFunction<T> value,
      final ObjLongConsumer<Html> cell) {
    return column(
        title,
        tip,
        Comparator.comparingLong(value),
        (page, row) -> cell.accept(page, value.applyAsLong(row)));
  }

  PagedTable<T> number(final String title, final String tip, final ToLongFunction<T> count) {
    return number(title, tip, count, Html::number);
  }

  PagedTable<T> size(final String title, final String tip, final ToLongFunction<T> bytes) {
    return number(title, tip, bytes, Html::size);
  }

  /** Adds a column of moments, in milliseconds since 1970; 0 is shown as nothing. */
  PagedTable<T> time(final String title, final String tip, final ToLongFunction<T> millis) {
    return number(title, tip, millis, (page, at) -> page.cell(at, at == 0 ? "" : Html.clock(at)));
  }

  /** Writes a page of the table, whose rows come in their own order. */
  void render(final Html page, final List<T> rows, final PageQuery query) {
    final int size = query.pageSize(id);
    final int pages = Math.max(1, (rows.size() + size - 1) / size);
    final int shown = Math.min(pages, query.page(id));
    final int sort = query.sort(id) <= columns.size() ? query.sort(id) : 0;
    final List<T> sorted = new ArrayList<>(rows);
    if (sort > 0) {
      final Comparator<T> order = columns.get(sort - 1).order();
      sorted.sort(query.descends(id) ? order.reversed() : order);
    }
    page.raw("<div id=\"zerohop-" + id + "-box\">");
    if (pages > 1 || size < rows.size()) {
      pager(page, pages, shown, query);
    }
    page.raw(
        "<div class=\"scroll\"><table id=\"zerohop-" + id + "\" class=\"" + Html.TABLE + "\">");
    page.raw("<thead><tr>");
    for (int i = 1; i <= columns.size(); i++) {
      head(page, i, sort, query);
    }
    page.raw("</tr></thead><tbody>");
    sorted.stream()
        .skip((long) (shown - 1) * size)
        .limit(size)
        .forEach(
            row -> {
              page.raw("<tr>");
              columns.forEach(column -> column.cell().accept(page, row));
              page.raw("</tr>");
            });
    page.endTable().raw("</div></div>");
  }

  private void head(final Html page, final int column, final int sort, final PageQuery query) {
    final Column<T> one = columns.get(column - 1);
    final boolean sorts = column == sort;
    final boolean descends = sorts && query.descends(id);
    page.raw("<th");
    if (sorts) {
      page.raw(" aria-sort=\"" + (descends ? "descending" : "ascending") + "\"");
    }
    if (!one.tip().isEmpty()) {
      page.raw(" title=\"").text(one.tip()).raw("\"");
    }
    page.raw("><a href=\"").text(query.sorted(id, column, !sorts || !descends)).raw("\">");
    page.text(one.title()).raw(sorts ? descends ? " &#9662;" : " &#9652;" : "").raw("</a></th>");
  }

  private void pager(final Html page, final int pages, final int shown, final PageQuery query) {
    page.raw("<form method=\"get\" class=\"pager\" action=\"#zerohop-" + id + "\">");
    query
        .without(id + ".page", id + ".pageSize")
        .forEach(
            (name, value) -> {
              page.raw("<input type=\"hidden\" name=\"").text(name).raw("\" value=\"");
              page.text(value).raw("\" />");
            });
    if (shown > 1) {
      page.raw("<a href=\"").text(query.paged(id, shown - 1)).raw("\">&lt; Previous</a> ");
    }
    page.raw("<span>" + pages + " Pages.</span> <label>Jump to <input type=\"text\" size=\"4\"");
    page.raw(" name=\"" + id + ".page\" value=\"" + shown + "\" /></label>");
    page.raw(
        " <label>. Show <input type=\"text\" size=\"4\" name=\"" + id + ".pageSize\" value=\"");
    page.raw(query.pageSize(id) + "\" /> items in a page.</label>");
    page.raw(" <button type=\"submit\">Go</button>");
    if (shown < pages) {
      page.raw(" <a href=\"").text(query.paged(id, shown + 1)).raw("\">Next &gt;</a>");
    }
    page.raw("</form>");
  }
}
