package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Path;
import io.zerohop.spark.ui.UiSnapshot.Shuffle;
import java.util.List;
import java.util.Locale;

/** The shuffles: which stages, what came by which path, how long readers waited, what fell back. */
final class ShuffleTable {
  static final int MOST_ROWS = 300;

  private ShuffleTable() {}

  static void render(final Html page, final UiSnapshot snapshot, final PageQuery query) {
    final List<Shuffle> found =
        snapshot.shuffles().stream().filter(shuffle -> matches(shuffle, query)).toList();
    final List<Shuffle> shown = found.subList(Math.max(0, found.size() - MOST_ROWS), found.size());
    page.raw("<h4>Shuffles</h4><p class=\"note\">" + shown.size() + " of ");
    page.raw(snapshot.shuffles().size() + " shuffles");
    if (snapshot.evictedShuffles() > 0) {
      page.raw("; " + snapshot.evictedShuffles() + " that were used longer ago are not kept");
    }
    page.raw(".</p>");
    page.table(
        "zerohop-shuffles",
        "Shuffle",
        "Written by stages",
        "Read by stages",
        "Blocks",
        "local",
        "peer",
        "ucx",
        "sent",
        "staged",
        "Fetch wait time",
        "Fallbacks");
    shown.forEach(shuffle -> row(page, shuffle));
    page.endTable();
  }

  private static boolean matches(final Shuffle shuffle, final PageQuery query) {
    if (!query.path().isEmpty() && shuffle.bytes().getOrDefault(query.path(), 0L) == 0) {
      return false;
    }
    final String text = query.text();
    return text.isEmpty()
        || String.valueOf(shuffle.shuffleId()).equals(text)
        || shuffle.writers().stream().anyMatch(stage -> text.equals(stage.toString()))
        || shuffle.readers().stream().anyMatch(stage -> text.equals(stage.toString()))
        || shuffle.fallbacks().keySet().stream()
            .anyMatch(reason -> reason.toLowerCase(Locale.ROOT).contains(text));
  }

  private static void row(final Html page, final Shuffle shuffle) {
    page.raw("<tr>").number(shuffle.shuffleId());
    stages(page, shuffle.writers());
    stages(page, shuffle.readers());
    page.number(shuffle.blocks().values().stream().mapToLong(Long::longValue).sum());
    for (final Path path : List.of(Path.LOCAL, Path.PEER, Path.UCX, Path.SENT, Path.STAGED)) {
      page.size(shuffle.bytes().getOrDefault(path.label(), 0L));
    }
    page.cell(shuffle.waitNanos(), Html.duration(shuffle.waitNanos()));
    final long blocks = shuffle.fallbacks().values().stream().mapToLong(Long::longValue).sum();
    page.raw("<td sorttable_customkey=\"" + blocks + "\">");
    shuffle
        .fallbacks()
        .forEach(
            (reason, count) -> page.raw("<div>").text(count + " blocks: " + reason).raw("</div>"));
    page.raw("</td></tr>");
  }

  private static void stages(final Html page, final List<Integer> stages) {
    page.raw("<td>");
    for (final int stage : stages) {
      page.raw("<a href=\"../stages/stage/?id=" + stage + "&amp;attempt=0\">" + stage + "</a> ");
    }
    page.raw("</td>");
  }
}
