package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** The bytes of each link: as one bar, and as numbers with rates beside the expected ones. */
final class LinkTable {
  private LinkTable() {}

  /** Returns a link's name for users. */
  static String name(final Link link) {
    return switch (link) {
      case LOCAL -> "own memory";
      case PEER_GPU -> "same GPU";
      case PEER_NVLINK -> "NVLink";
      case PEER_PCIE -> "PCIe peer";
      case PEER_HOST -> "host memory";
      case PEER -> "same node, link not known";
      case UCX -> "UCX";
      case SENT -> "sent by Spark's connections";
      case STAGED -> "Spark's block transfer";
    };
  }

  /** Returns where a link leads, for users. */
  static String place(final Link link) {
    return switch (link) {
      case LOCAL -> "In place";
      case PEER_GPU, PEER_NVLINK, PEER_PCIE, PEER_HOST, PEER -> "Same node";
      case UCX, SENT -> "Other nodes";
      case STAGED -> "Fell back";
    };
  }

  /** Writes the bar of all bytes, with its legend. */
  static void bar(final Html page, final Summary summary) {
    if (summary.total() == 0) {
      return;
    }
    page.raw("<div class=\"bar\" id=\"zerohop-bar\" role=\"img\" aria-label=\"");
    page.text("Bytes by link, in numbers below").raw("\">");
    summary
        .bytes()
        .forEach(
            (link, bytes) -> {
              if (bytes > 0) {
                page.raw("<span data-link=\"" + link.label() + "\" style=\"flex:" + bytes);
                page.raw(" 1 0;background:" + PageStyle.color(link) + "\" title=\"");
                page.text(label(link, bytes, summary.total())).raw("\"></span>");
              }
            });
    page.raw("</div><ul class=\"legend\">");
    summary
        .bytes()
        .forEach(
            (link, bytes) -> {
              page.raw("<li><i style=\"background:" + PageStyle.color(link) + "\"></i>");
              page.text(label(link, bytes, summary.total())).raw("</li>");
            });
    page.raw("</ul>");
  }

  private static String label(final Link link, final long bytes, final long total) {
    return place(link)
        + ", "
        + name(link)
        + ": "
        + Html.bytes(bytes)
        + " ("
        + Summary.percent((double) bytes / total)
        + ")";
  }

  /**
   * Writes the table.
   *
   * @param expected bytes a second that a link should have at least, where that is known
   */
  static void render(final Html page, final List<Pair> pairs, final Map<Link, Double> expected) {
    final Map<Link, long[]> sums = new EnumMap<>(Link.class);
    long total = 0;
    for (final Pair pair : pairs) {
      final long[] sum = sums.computeIfAbsent(Summary.link(pair), any -> new long[5]);
      sum[0] += pair.blocks();
      sum[1] += pair.bytes();
      sum[2] += pair.busyMillis();
      sum[3] += pair.fullBytes();
      sum[4] += pair.fullMillis();
      total += pair.bytes();
    }
    page.raw("<h4>Links</h4><p class=\"note\">A rate is shown where blocks came without a break");
    page.raw(" for 30 ms or more, between two executors; else there are bytes and time alone.");
    page.raw("</p><div class=\"scroll\">");
    page.table(
        "zerohop-links",
        "Where",
        "Link",
        "Path",
        "Blocks",
        "Bytes",
        "Share",
        "In use",
        "Rate between two executors",
        "Expected");
    for (final Map.Entry<Link, long[]> entry : sums.entrySet()) {
      final Link link = entry.getKey();
      final long[] sum = entry.getValue();
      page.raw("<tr>").cell(place(link)).cell(name(link)).cell(link.path().label());
      page.number(sum[0]).size(sum[1]);
      final double share = total == 0 ? 0 : (double) sum[1] / total;
      page.cell(Math.round(1e6 * share), Summary.percent(share));
      page.cell(sum[2], Html.duration(sum[2]));
      page.cell(sum[4] == 0 ? 0 : (long) (1e3 * sum[3] / sum[4]), Html.rate(sum[3], sum[4]));
      final Double least = expected.get(link);
      page.cell(
          least == null ? 0 : least.longValue(),
          least == null ? "not known" : Html.rate(least.longValue(), 1_000) + " or more");
      page.raw("</tr>");
    }
    page.endTable().raw("</div>");
  }
}
