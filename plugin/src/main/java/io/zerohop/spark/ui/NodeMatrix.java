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
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A table of who read how much of whom, by nodes; one node may be unfolded into its executors. A
 * cell says bytes, the rate where links were in use without a break, and what took the fallback.
 * The worse of both colours it, in bold.
 */
final class NodeMatrix {
  /** Rows and columns at most; the rest is summed up. */
  static final int MAX_ROWS = 32;

  private static final String REST = "all others";
  private static final String DRIVER = "driver";

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
    final Map<String, Integer> executors = executors(pairs, nodes);
    final boolean isOne = executors.size() == 1;
    final String unfolded = isOne ? executors.keySet().iterator().next() : query.node();
    final NodeMatrix matrix =
        new NodeMatrix(
            pairs,
            executor -> {
              final String node = node(nodes, executor);
              return node.equals(unfolded) && !node.equals(REST) ? executor : node;
            },
            expected);
    page.heading(
        isOne
            ? "Between executors: bytes and rates of each pair"
            : "Between nodes: bytes in total, rates between two executors",
        "A cell has the bytes that the reader got from the owner, their rate with its share of the"
            + " expected rate, and the bytes that took the fallback with their share of all. If a"
            + " pair uses several links, the cell shows the one with the lowest share of its"
            + " expected rate. The worse of the two shares sets the colour and is bold:");
    Rating.legend(page);
    matrix.worst(page);
    matrix.table(page, executors, unfolded, query);
  }

  /** Counts the executors of each node that has read or was read. */
  private static Map<String, Integer> executors(
      final List<Pair> pairs, final Map<String, String> nodes) {
    final Set<String> seen = new HashSet<>();
    pairs.forEach(pair -> seen.addAll(List.of(pair.reader(), pair.owner())));
    final Set<String> used = new HashSet<>();
    seen.forEach(one -> used.add(node(nodes, one)));
    used.remove(REST);
    nodes.keySet().stream().filter(one -> !one.equals(DRIVER)).forEach(seen::add);
    final Map<String, Integer> executors = new TreeMap<>();
    for (final String one : seen) {
      if (used.contains(node(nodes, one)) && !one.startsWith(ShuffleModel.OTHERS_OF)) {
        executors.merge(node(nodes, one), 1, Integer::sum);
      }
    }
    return executors;
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
      page.raw("<p class=\"note\">The " + names.size() + " with the most bytes have rows of their");
      page.raw(" own; the other " + (moved.size() - names.size()) + " are added up.</p>");
    }
    if (cells.containsKey(REST) || cells.values().stream().anyMatch(row -> row.containsKey(REST))) {
      names.add(REST);
    }
    if (!query.node().isEmpty()) {
      page.raw("<p><a href=\"").text(query.unfolded("")).raw("\">Nodes only</a></p>");
    }
    page.raw("<div class=\"scroll box\" tabindex=\"0\"><table id=\"zerohop-nodes\"");
    page.raw(" class=\"table table-sm matrix\"><thead><tr><th>reader &#8595; owner &#8594;</th>");
    names.forEach(name -> page.raw("<th>").text(name).raw("</th>"));
    page.raw("</tr></thead><tbody>");
    for (final String reader : names) {
      page.raw("<tr><th>");
      final Integer count = executors.get(reader);
      if (count != null && !reader.equals(unfolded)) {
        page.raw("<a title=\"Show its executors\" href=\"").text(query.unfolded(reader)).raw("\">");
        page.text(reader).raw("</a><br /><small>" + count);
        page.raw(count == 1 ? " executor</small>" : " executors</small>");
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

  /** Names the two cells to look at first, as far as anything is wrong with them. */
  private void worst(final Html page) {
    String fallback = "";
    String rate = "";
    long mostBytes = 0;
    double lowest = Rating.Shade.YELLOW.belowRate();
    for (final Map.Entry<String, Map<String, Cell>> row : new TreeMap<>(cells).entrySet()) {
      for (final Map.Entry<String, Cell> column : new TreeMap<>(row.getValue()).entrySet()) {
        final Cell cell = column.getValue();
        final String where = row.getKey() + " from " + column.getKey() + ", ";
        if (cell.fallbackBytes() > mostBytes && cell.fallback() >= Summary.SOME_FALLBACK) {
          mostBytes = cell.fallbackBytes();
          fallback = "Most fallback: " + where + cell.fallbackText() + ". ";
        }
        final double reached = cell.reached();
        if (reached >= 0 && reached < lowest) {
          lowest = reached;
          rate = "Lowest rate: " + where + cell.rateText() + ".";
        }
      }
    }
    if (!fallback.isEmpty() || !rate.isEmpty()) {
      page.raw("<p id=\"zerohop-worst\">").text(fallback + rate).raw("</p>");
    }
  }

  private void cell(final Html page, final @Nullable Cell cell) {
    if (cell == null) {
      page.raw("<td></td>");
      return;
    }
    final Rating rating = Rating.of(cell.reached(), cell.fallback());
    page.raw("<td class=\"" + rating.shade().css() + "\" data-bytes=\"" + cell.bytes());
    page.raw("\" title=\"").text(cell.title() + ". " + rating.text()).raw("\">");
    page.text(Html.bytes(cell.bytes()));
    line(page, cell.rateText(), rating.cause() == Rating.Cause.RATE);
    line(page, cell.fallbackText(), rating.cause() == Rating.Cause.FALLBACK);
    page.raw("</td>");
  }

  private static void line(final Html page, final String text, final boolean decides) {
    if (!text.isEmpty()) {
      page.raw(decides ? "<br /><b>" : "<br />").text(text).raw(decides ? "</b>" : "");
    }
  }

  /** The blocks that a row's node read from a column's node. */
  private final class Cell {
    private final Map<Link, Pair> links = new EnumMap<>(Link.class);

    void add(final Pair pair) {
      links.merge(Summary.link(pair), pair, Pair::plus);
    }

    private Pair all() {
      return links.values().stream().reduce(Pair::plus).orElseThrow();
    }

    long bytes() {
      return all().bytes();
    }

    long fallbackBytes() {
      final Pair staged = links.get(Link.STAGED);
      return staged == null ? 0 : staged.bytes();
    }

    double fallback() {
      return bytes() == 0 ? 0 : (double) fallbackBytes() / bytes();
    }

    /** Returns what took the fallback, in words; empty if nothing did. */
    String fallbackText() {
      return fallbackBytes() == 0
          ? ""
          : Html.bytes(fallbackBytes()) + " fallback (" + Summary.percent(fallback()) + ")";
    }

    /** Returns the rate in words; empty if none is known. */
    String rateText() {
      final Map.Entry<Link, Pair> slowest = slowest();
      final Pair shown = slowest == null ? all() : slowest.getValue();
      final String rate = Html.rate(shown.fullBytes(), shown.fullMillis());
      return slowest == null ? rate : rate + " (" + Math.round(100 * reached(slowest)) + " %)";
    }

    /** The link that reached the least part of what is expected; null if none is known. */
    private Map.@Nullable Entry<Link, Pair> slowest() {
      return links.entrySet().stream()
          .filter(one -> expected.containsKey(one.getKey()) && one.getValue().fullMillis() > 0)
          .min(Comparator.comparingDouble(this::reached))
          .orElse(null);
    }

    private double reached(final Map.Entry<Link, Pair> one) {
      return one.getValue().rate() / expected.getOrDefault(one.getKey(), Double.NaN);
    }

    /** The least part of what is expected that a link reached; negative if none is known. */
    double reached() {
      final Map.Entry<Link, Pair> slowest = slowest();
      return slowest == null ? -1 : reached(slowest);
    }

    String title() {
      return links.entrySet().stream()
          .sorted(
              Comparator.comparingLong((Map.Entry<Link, Pair> one) -> one.getValue().bytes())
                  .reversed())
          .map(one -> LinkTable.name(one.getKey()) + " " + Html.bytes(one.getValue().bytes()))
          .collect(Collectors.joining(", "));
    }
  }

  /** The order of executors: by number, then those without a number by name. */
  static final class ExecutorOrder implements Comparator<String> {
    static final ExecutorOrder INSTANCE = new ExecutorOrder();

    private static final int MAX_DIGITS = 18;

    private ExecutorOrder() {}

    @Override
    public int compare(final String one, final String other) {
      final int byNumber = Long.compare(number(one), number(other));
      return byNumber != 0 ? byNumber : one.compareTo(other);
    }

    private static long number(final String id) {
      long number = 0;
      for (int i = 0; i < id.length(); i++) {
        final int digit = id.charAt(i) - '0';
        if (digit < 0 || digit > 9 || i == MAX_DIGITS) {
          return Long.MAX_VALUE;
        }
        number = 10 * number + digit;
      }
      return id.isEmpty() ? Long.MAX_VALUE : number;
    }
  }
}
