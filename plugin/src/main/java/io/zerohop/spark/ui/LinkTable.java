package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.ui.Html.PageStyle;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The bytes of each link: as one bar, and as numbers with rates beside the expected ones. */
final class LinkTable {
  private LinkTable() {}

  /** Returns the one name of a link for users. */
  static String name(final Link link) {
    return switch (link) {
      case PEER_GPU -> "same GPU";
      case PEER_NVLINK -> "NVLink";
      case PEER_PCIE -> "PCIe";
      case PEER_HOST -> "shared host memory";
      case PEER -> "same node, link not known";
      case LOCAL, UCX, SENT, STAGED -> name(link.path());
    };
  }

  /** Returns the one name of a path for users. */
  static String name(final BlockPath path) {
    return switch (path) {
      case LOCAL -> "own memory";
      case PEER -> "same node";
      case UCX -> "UCX";
      case SENT -> "Zerohop messages";
      case STAGED -> "fallback";
    };
  }

  /** Returns what a path is, for users. */
  static String meaning(final BlockPath path) {
    return switch (path) {
      case LOCAL -> "Read in place from the executor's own memory";
      case PEER -> "Read in place from another executor of the node";
      case UCX -> "Read out of another node's memory by UCX";
      case SENT -> "Sent by the owner, mostly of another node, over Spark's connections";
      case STAGED -> "Read by Spark's own block transfer, or from a file";
    };
  }

  /** Returns where a link leads, for users. */
  private static String place(final Link link) {
    return switch (link) {
      case LOCAL -> "same executor";
      case PEER_GPU, PEER_NVLINK, PEER_PCIE, PEER_HOST, PEER -> "same node";
      case UCX, SENT -> "other nodes";
      case STAGED -> "any";
    };
  }

  static void bar(final Html page, final Summary summary) {
    if (summary.total() == 0) {
      return;
    }
    final Map<Link, String> labels = new EnumMap<>(Link.class);
    Summary.shares(summary.bytes())
        .forEach(
            (link, share) ->
                labels.put(
                    link,
                    name(link)
                        + ": "
                        + Html.bytes(summary.bytes().getOrDefault(link, 0L))
                        + " ("
                        + share
                        + ")"));
    page.raw("<div class=\"bar\" id=\"zerohop-bar\" role=\"img\" aria-label=\"");
    page.text("Bytes by link, in numbers below").raw("\">");
    labels.forEach(
        (link, label) -> {
          final long bytes = summary.bytes().getOrDefault(link, 0L);
          if (bytes > 0) {
            page.raw("<span data-link=\"" + link.label() + "\" style=\"flex:");
            page.raw(bytes + " 1 0;background:" + PageStyle.color(link));
            page.raw("\" title=\"").text(label).raw("\"></span>");
          }
        });
    page.raw("</div>");
    legend(page, labels);
  }

  /** Writes labels beside the colours of their links. */
  static void legend(final Html page, final Map<Link, String> labels) {
    page.raw("<ul class=\"legend\">");
    labels.forEach(
        (link, label) -> {
          page.raw("<li title=\"").text(meaning(link.path())).raw("\"><i style=\"background:");
          page.raw(PageStyle.color(link) + "\"></i>").text(label).raw("</li>");
        });
    page.raw("</ul>");
  }

  /**
   * Writes the table.
   *
   * @param expected bytes a second that a link should have at least, where that is known
   */
  static void render(final Html page, final List<Pair> pairs, final Map<Link, Double> expected) {
    final Map<Link, Pair> sums = new EnumMap<>(Link.class);
    pairs.forEach(pair -> sums.merge(Summary.link(pair), pair, Pair::plus));
    final Map<Link, Long> bytes = new EnumMap<>(Link.class);
    sums.forEach((link, sum) -> bytes.put(link, sum.bytes()));
    final Map<Link, String> shares = Summary.shares(bytes);
    page.heading(
        "Links: rates between two executors",
        "Zerohop messages: the owner sends many blocks at once out of its memory, over the network."
            + " Fallback: Spark's own block transfer reads block by block, from memory or files. A"
            + " rate needs 30 ms of blocks without a break. It looks lower than it is if tasks"
            + " compute between two reads.");
    page.raw("<div class=\"scroll\">");
    page.table(
        "zerohop-links",
        "Link",
        "Node",
        "Path",
        "Blocks",
        "Bytes",
        "Share",
        "Time in use, sum of all pairs",
        "Rate",
        "Expected, at least",
        "Share of expected");
    sums.forEach(
        (link, sum) -> row(page, link, sum, shares.getOrDefault(link, ""), expected.get(link)));
    page.endTable().raw("</div>");
  }

  private static void row(
      final Html page,
      final Link link,
      final Pair sum,
      final String share,
      final @Nullable Double expected) {
    page.raw("<tr><td title=\"").text(meaning(link.path())).raw("\">");
    page.raw("<i class=\"chip\" style=\"background:" + PageStyle.color(link) + "\"></i>");
    page.text(name(link)).raw("</td>").cell(place(link));
    page.cell(link.path().label()).number(sum.blocks()).size(sum.bytes());
    page.cell(sum.bytes(), share).cell(sum.busyMillis(), Html.duration(sum.busyMillis()));
    page.cell((long) sum.rate(), Html.rate(sum.fullBytes(), sum.fullMillis()));
    if (expected == null) {
      page.cell(0, "not known").cell(0, "");
    } else {
      page.cell(expected.longValue(), Html.rate(expected.longValue(), 1_000));
      if (sum.fullMillis() == 0) {
        page.cell(0, "");
      } else {
        final double reached = sum.rate() / expected;
        page.raw("<td class=\"" + Rating.of(reached, 0).shade().css() + "\"");
        page.raw(" sorttable_customkey=\"" + Math.round(1e3 * reached) + "\">");
        page.text(Math.round(100 * reached) + " %").raw("</td>");
      }
    }
    page.raw("</tr>");
  }
}
