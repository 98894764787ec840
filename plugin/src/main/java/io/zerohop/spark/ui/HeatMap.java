package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Path;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Who read how much of whom: a sum for each path, a matrix of the executors that moved most, and a
 * table of pairs. A cell is shaded by its bytes, has as many bars as its shade is deep, and says
 * all in numbers.
 */
final class HeatMap {
  static final int MOST_EXECUTORS = 24;
  static final int MOST_ROWS = 500;
  private static final int LEVELS = 4;
  private static final String BAR = "\u25AE";

  private HeatMap() {}

  static void render(final Html page, final List<Pair> all, final PageQuery query) {
    final List<Pair> pairs = all.stream().filter(pair -> query.shows(pair.path())).toList();
    totals(page, pairs);
    page.raw("<h4>Between executors</h4>");
    page.raw(
        "<p class=\"note\">A row read what a column holds. GB/s counts only the time in which"
            + " blocks were handed out, in slots of 10 ms: at least so fast.</p>");
    matrix(page, pairs);
    table(page, pairs);
  }

  private static void totals(final Html page, final List<Pair> pairs) {
    page.raw("<h4>By path</h4>").table("zerohop-paths", "Path", "Blocks", "Bytes", "Share");
    final long sum = pairs.stream().mapToLong(Pair::bytes).sum();
    for (final Path path : Path.values()) {
      final List<Pair> one = pairs.stream().filter(p -> p.path().equals(path.label())).toList();
      if (!one.isEmpty()) {
        final long bytes = one.stream().mapToLong(Pair::bytes).sum();
        final long share = sum == 0 ? 0 : Math.round(100.0 * bytes / sum);
        page.raw("<tr>").cell(path.label());
        page.number(one.stream().mapToLong(Pair::blocks).sum()).size(bytes);
        page.cell(share, share + " %").raw("</tr>");
      }
    }
    page.endTable();
  }

  private static void matrix(final Html page, final List<Pair> pairs) {
    final Map<String, Map<String, Map<String, Pair>>> cells = new HashMap<>();
    for (final Pair pair : pairs) {
      cells
          .computeIfAbsent(pair.reader(), any -> new HashMap<>())
          .computeIfAbsent(pair.owner(), any -> new LinkedHashMap<>())
          .put(pair.path(), pair);
    }
    final Map<String, Long> moved = new HashMap<>();
    for (final Pair pair : pairs) {
      moved.merge(pair.reader(), pair.bytes(), Long::sum);
      moved.merge(pair.owner(), pair.bytes(), Long::sum);
    }
    final List<String> executors =
        moved.entrySet().stream()
            .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
            .limit(MOST_EXECUTORS)
            .map(Map.Entry::getKey)
            .sorted(ExecutorOrder.INSTANCE)
            .toList();
    if (moved.size() > executors.size()) {
      page.raw("<p class=\"note\">The " + executors.size() + " executors of " + moved.size());
      page.raw(" that moved most; all pairs are in the table below.</p>");
    }
    final long most =
        cells.values().stream()
            .flatMap(row -> row.values().stream())
            .mapToLong(HeatMap::bytes)
            .max()
            .orElse(0);
    page.raw("<table id=\"zerohop-heat\" class=\"table table-bordered table-sm heat\"><thead><tr>");
    page.raw("<th>reader \\ owner</th>");
    executors.forEach(id -> page.raw("<th>").text(id).raw("</th>"));
    page.raw("</tr></thead><tbody>");
    for (final String reader : executors) {
      page.raw("<tr><th>").text(reader).raw("</th>");
      for (final String owner : executors) {
        cell(page, cells.getOrDefault(reader, Map.of()).getOrDefault(owner, Map.of()), most);
      }
      page.raw("</tr>");
    }
    page.endTable();
  }

  private static void cell(final Html page, final Map<String, Pair> paths, final long most) {
    final long bytes = bytes(paths);
    if (paths.isEmpty()) {
      page.raw("<td></td>");
      return;
    }
    final int level = level(bytes, most);
    page.raw("<td class=\"l" + level + "\" data-bytes=\"" + bytes + "\">");
    page.raw(BAR.repeat(level));
    for (final Pair pair : paths.values()) {
      page.raw("<div>").text(pair.path() + " " + Html.bytes(pair.bytes()));
      page.text(" " + Html.rate(pair.bytes(), pair.busyMillis())).raw("</div>");
    }
    page.raw("</td>");
  }

  private static long bytes(final Map<String, Pair> paths) {
    return paths.values().stream().mapToLong(Pair::bytes).sum();
  }

  /** From 1 to {@link #LEVELS}, by the share of the most. */
  static int level(final long bytes, final long most) {
    return most <= 0
        ? 1
        : (int) Math.max(1, Math.min(LEVELS, Math.ceil((double) LEVELS * bytes / most)));
  }

  private static void table(final Html page, final List<Pair> pairs) {
    page.raw("<details><summary>All pairs</summary>");
    if (pairs.size() > MOST_ROWS) {
      page.raw(
          "<p class=\"note\">The " + MOST_ROWS + " of " + pairs.size() + " that moved most.</p>");
    }
    page.table("zerohop-pairs", "Reader", "Owner", "Path", "Blocks", "Bytes", "GB/s");
    pairs.stream()
        .sorted(Comparator.comparingLong(Pair::bytes).reversed())
        .limit(MOST_ROWS)
        .forEach(
            pair -> {
              page.raw("<tr>").cell(pair.reader()).cell(pair.owner()).cell(pair.path());
              page.number(pair.blocks()).size(pair.bytes());
              final long perSecond =
                  pair.busyMillis() <= 0 ? 0 : pair.bytes() * 1_000 / pair.busyMillis();
              page.cell(perSecond, Html.rate(pair.bytes(), pair.busyMillis())).raw("</tr>");
            });
    page.endTable().raw("</details>");
  }
}
