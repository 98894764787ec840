package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.ReportCounters;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.UnaryOperator;

/**
 * The matrix of bytes read between nodes; one node may be unfolded into its executors. A cell says
 * bytes, the rate where links were in use without a break, and what fell back, and is coloured by
 * the rate's part of what is expected.
 */
final class NodeMatrix {
  /** Rows and columns at most; the rest is summed up. */
  static final int MAX_ROWS = 32;

  private static final String REST = "all others";
  private static final double GOOD = 0.5;
  private static final double LOW = 0.1;
  private static final double MOSTLY = 0.5;

  private final Map<String, Map<String, Cell>> cells = new HashMap<>();
  private final Map<String, Long> moved = new HashMap<>();
  private final Map<Link, Double> expected;

  private NodeMatrix(
      final List<Pair> pairs, final UnaryOperator<String> name, final Map<Link, Double> expected) {
    this.expected = expected;
    for (final Pair pair : pairs) {
      for (final String one : List.of(name.apply(pair.reader()), name.apply(pair.owner()))) {
        if (!one.equals(REST)) {
          moved.merge(one, pair.bytes(), Long::sum);
        }
      }
    }
    final Set<String> kept = new HashSet<>(rows());
    for (final Pair pair : pairs) {
      final String reader = keep(name.apply(pair.reader()), kept);
      final String owner = keep(name.apply(pair.owner()), kept);
      cells
          .computeIfAbsent(reader, any -> new HashMap<>())
          .computeIfAbsent(owner, any -> new Cell())
          .add(pair);
    }
  }

  private static String keep(final String name, final Set<String> kept) {
    return kept.contains(name) ? name : REST;
  }

  /** Those that moved most, by their names. */
  private List<String> rows() {
    return moved.entrySet().stream()
        .sorted(
            Map.Entry.<String, Long>comparingByValue().reversed().thenComparing(Map.Entry::getKey))
        .limit(MAX_ROWS)
        .map(Map.Entry::getKey)
        .sorted(ExecutorOrder.INSTANCE)
        .toList();
  }

  /**
   * Writes the matrix.
   *
   * @param nodes each executor's node
   * @param expected bytes a second that a link should have at least, where that is known
   */
  static void render(
      final Html page,
      final List<Pair> pairs,
      final Map<String, String> nodes,
      final Map<Link, Double> expected,
      final PageQuery query) {
    final Map<String, Integer> executors = new TreeMap<>();
    final Set<String> seen = new HashSet<>();
    for (final Pair pair : pairs) {
      for (final String one : List.of(pair.reader(), pair.owner())) {
        if (!one.equals(ReportCounters.OTHERS) && seen.add(one)) {
          executors.merge(node(nodes, one), 1, Integer::sum);
        }
      }
    }
    final String unfolded =
        executors.size() == 1 ? executors.keySet().iterator().next() : query.node();
    final NodeMatrix matrix =
        new NodeMatrix(
            pairs,
            executor -> {
              final String node = node(nodes, executor);
              return node.equals(unfolded) && !node.equals(REST) ? executor : node;
            },
            expected);
    page.raw("<h4>Between nodes</h4><p class=\"note\">A row read what a column holds. ");
    page.raw("A rate is that of the link which reached the least part of what is expected, while");
    page.raw(" it was in use without a break: green from half of that, yellow below, red below a");
    page.raw(" tenth. A cell is also yellow or red where some or most bytes fell back, and grey");
    page.raw(" where nothing is expected. Tasks that compute between two reads make a link look");
    page.raw(" slow.</p>");
    matrix.table(page, executors, unfolded, query);
  }

  private static String node(final Map<String, String> nodes, final String executor) {
    if (executor.equals(ReportCounters.OTHERS)) {
      return REST; // A report, or the model, had no room for their names.
    }
    final String node = nodes.get(executor);
    return node == null || node.isEmpty() ? "unknown node" : node;
  }

  private void table(
      final Html page,
      final Map<String, Integer> executors,
      final String unfolded,
      final PageQuery query) {
    final List<String> names = new java.util.ArrayList<>(rows());
    if (moved.size() > names.size()) {
      page.raw("<p class=\"note\">The " + names.size() + " of " + moved.size());
      page.raw(" that moved most, and all others together.</p>");
    }
    if (cells.containsKey(REST) || cells.values().stream().anyMatch(row -> row.containsKey(REST))) {
      names.add(REST);
    }
    if (!query.node().isEmpty()) {
      page.raw("<p><a href=\"").text(query.unfolded("")).raw("\">Nodes only</a></p>");
    }
    page.raw("<div class=\"scroll box\" tabindex=\"0\"><table id=\"zerohop-nodes\"");
    page.raw(" class=\"table table-sm matrix\"><thead><tr><th>reader \\ owner</th>");
    names.forEach(name -> page.raw("<th>").text(name).raw("</th>"));
    page.raw("</tr></thead><tbody>");
    for (final String reader : names) {
      page.raw("<tr><th>");
      final Integer count = executors.get(reader);
      if (count != null && !reader.equals(unfolded)) {
        page.raw("<a title=\"Show its executors\" href=\"").text(query.unfolded(reader)).raw("\">");
        page.text(reader).raw("</a> (" + count + ")");
      } else {
        page.text(reader);
      }
      page.raw("</th>");
      for (final String owner : names) {
        cell(page, cells.getOrDefault(reader, Map.of()).get(owner));
      }
      page.raw("</tr>");
    }
    page.endTable().raw("</div>");
  }

  private void cell(final Html page, final Cell cell) {
    if (cell == null) {
      page.raw("<td></td>");
      return;
    }
    final double reached = cell.reached(expected);
    page.raw("<td class=\"" + color(reached, cell.staged()) + "\" data-bytes=\"" + cell.bytes);
    page.raw("\" title=\"").text(cell.title()).raw("\">").text(Html.bytes(cell.bytes));
    if (cell.fullMillis > 0) {
      final Link slowest = cell.slowest(expected);
      final long[] full =
          slowest == null ? new long[] {cell.fullBytes, cell.fullMillis} : cell.full.get(slowest);
      page.raw("<br />").text(Html.rate(full[0], full[1]));
      page.raw(slowest == null ? "" : " (" + Math.round(100 * reached) + " %)");
    }
    if (cell.staged() > 0) {
      page.raw("<br />").text(Summary.percent(cell.staged()) + " staged");
    }
    page.raw("</td>");
  }

  /**
   * The class of a cell.
   *
   * @param reached part of what is expected; negative if it is not known
   * @param staged part of the bytes
   */
  static String color(final double reached, final double staged) {
    if (staged >= MOSTLY || reached >= 0 && reached < LOW) {
      return "r-bad";
    }
    if (staged >= Summary.SOME_STAGED || reached >= 0 && reached < GOOD) {
      return "r-mid";
    }
    return reached < 0 ? "r-none" : "r-ok";
  }

  /** Bytes that a row's node read from a column's node. */
  private static final class Cell {
    private final Map<Link, Long> links = new EnumMap<>(Link.class);
    private final Map<Link, long[]> full = new EnumMap<>(Link.class);
    private long bytes;
    private long fullBytes;
    private long fullMillis;

    void add(final Pair pair) {
      final Link link = Summary.link(pair);
      bytes += pair.bytes();
      links.merge(link, pair.bytes(), Long::sum);
      fullBytes += pair.fullBytes();
      fullMillis += pair.fullMillis();
      final long[] sum = full.computeIfAbsent(link, any -> new long[2]);
      sum[0] += pair.fullBytes();
      sum[1] += pair.fullMillis();
    }

    double staged() {
      return bytes == 0 ? 0 : (double) links.getOrDefault(Link.STAGED, 0L) / bytes;
    }

    /** The link that reached the least part of what is expected; null if none is known. */
    Link slowest(final Map<Link, Double> expected) {
      return full.keySet().stream()
          .filter(link -> expected.containsKey(link) && full.get(link)[1] > 0)
          .min(Comparator.comparingDouble(link -> reached(link, expected)))
          .orElse(null);
    }

    private double reached(final Link link, final Map<Link, Double> expected) {
      return 1e3 * full.get(link)[0] / full.get(link)[1] / expected.get(link);
    }

    /** The least part of what is expected that a link reached; negative if none is known. */
    double reached(final Map<Link, Double> expected) {
      final Link slowest = slowest(expected);
      return slowest == null ? -1 : reached(slowest, expected);
    }

    String title() {
      final StringBuilder title = new StringBuilder();
      links.entrySet().stream()
          .sorted(Map.Entry.<Link, Long>comparingByValue(Comparator.reverseOrder()))
          .forEach(
              entry ->
                  title
                      .append(title.isEmpty() ? "" : ", ")
                      .append(LinkTable.name(entry.getKey()))
                      .append(' ')
                      .append(Html.bytes(entry.getValue())));
      return title.toString();
    }
  }
}
