package io.zerohop.spark.ui;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * The parameters of a request: a path, a text to filter shuffles by, a node to unfold, and a page
 * and an order of each table. Immutable; whatever a user types is cut, and what is no number is the
 * default.
 */
record PageQuery(Map<String, String> given) {
  /** Tables that have pages. */
  static final List<String> TABLES = List.of("shuffles", "pairs", "pools", "keepers", "contacts");

  /** Everything, as it is at first. */
  static final PageQuery ALL = of(parameter -> null);

  private static final int MAX_CHARS = 100;
  private static final int MAX_PAGE_SIZE = 1_000;
  private static final int DEFAULT_PAGE_SIZE = 100;
  private static final String DESC = ".desc";
  private static final String SORT = ".sort";
  private static final String PAGE = ".page";
  private static final String SIZE = ".pageSize";

  /** The query of a request, by its parameters; null stands for those that are not there. */
  static PageQuery of(final UnaryOperator<String> parameter) {
    final Map<String, String> given = new LinkedHashMap<>();
    take(given, "path", parameter);
    take(given, "q", parameter);
    take(given, "node", parameter);
    for (final String table : TABLES) {
      for (final String suffix : List.of(SORT, DESC, PAGE, SIZE)) {
        take(given, table + suffix, parameter);
      }
    }
    return new PageQuery(given);
  }

  private static void take(
      final Map<String, String> given, final String name, final UnaryOperator<String> parameter) {
    final String value = parameter.apply(name);
    final String text = value == null ? "" : value.trim();
    if (!text.isEmpty()) {
      given.put(name, text.length() <= MAX_CHARS ? text : text.substring(0, MAX_CHARS));
    }
  }

  private String get(final String name) {
    return given.getOrDefault(name, "");
  }

  private int number(final String name, final int otherwise, final int max) {
    final String text = get(name);
    try {
      return Math.max(1, Math.min(max, Integer.parseInt(text)));
    } catch (final NumberFormatException e) {
      return otherwise;
    }
  }

  /** The path's label; empty for all. */
  String path() {
    return get("path").toLowerCase(Locale.ROOT);
  }

  /** What shuffles have; empty for all of them. */
  String text() {
    return get("q").toLowerCase(Locale.ROOT);
  }

  /** The node whose executors are shown; empty for none. */
  String node() {
    return get("node");
  }

  boolean shows(final String label) {
    return path().isEmpty() || path().equals(label);
  }

  /** The column that a table is sorted by, from 1; 0 for the table's own order. */
  int sort(final String table) {
    return get(table + SORT).isEmpty() ? 0 : number(table + SORT, 0, 100);
  }

  boolean descends(final String table) {
    return get(table + DESC).equals("true");
  }

  /** The page of a table, from 1. */
  int page(final String table) {
    return number(table + PAGE, 1, Integer.MAX_VALUE);
  }

  /** Rows of a page of a table. */
  int pageSize(final String table) {
    return number(table + SIZE, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
  }

  /** Returns whether the request concerns a table, so that the table must be visible. */
  boolean unfolds(final String table) {
    return given.keySet().stream().anyMatch(name -> name.startsWith(table + "."));
  }

  /** The address of the same page with a table sorted in another way. */
  String sorted(final String table, final int column, final boolean descends) {
    return with(
        Map.of(table + SORT, "" + column, table + DESC, "" + descends, table + PAGE, ""), table);
  }

  /** The address of the same page with another page of a table. */
  String paged(final String table, final int page) {
    return with(Map.of(table + PAGE, "" + page), table);
  }

  /** The address of the same page with the executors of a node. */
  String unfolded(final String node) {
    return with(Map.of("node", node), "nodes");
  }

  private String with(final Map<String, String> other, final String anchor) {
    final Map<String, String> all = new LinkedHashMap<>(given);
    other.forEach(
        (name, value) -> {
          if (value.isEmpty()) {
            all.remove(name);
          } else {
            all.put(name, value);
          }
        });
    final StringBuilder address = new StringBuilder("?");
    all.forEach(
        (name, value) ->
            address
                .append(address.length() > 1 ? "&" : "")
                .append(name)
                .append('=')
                .append(URLEncoder.encode(value, StandardCharsets.UTF_8)));
    return address.append("#zerohop-").append(anchor).toString();
  }

  /** What a form has to carry along, but for what it asks for itself. */
  Map<String, String> without(final String... names) {
    final Map<String, String> rest = new LinkedHashMap<>(given);
    List.of(names).forEach(rest::remove);
    return rest;
  }
}
