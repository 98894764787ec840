package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Path;
import io.zerohop.spark.ui.UiSnapshot.Shuffle;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** The shuffles: stages, what came by which path, how long readers waited, why fallbacks. */
final class ShuffleTable {
  private static final int NANOS_PER_MILLI = 1_000_000;

  private static final PagedTable<Shuffle> TABLE = table();

  private ShuffleTable() {}

  private static PagedTable<Shuffle> table() {
    final PagedTable<Shuffle> table =
        new PagedTable<Shuffle>("shuffles")
            .column(
                "Shuffle",
                "",
                Comparator.comparingInt(Shuffle::shuffleId),
                (page, shuffle) -> page.number(shuffle.shuffleId()))
            .column(
                "Written by stages",
                "",
                Comparator.comparing(shuffle -> first(shuffle.writers())),
                (page, shuffle) -> stages(page, shuffle.writers()))
            .column(
                "Read by stages",
                "",
                Comparator.comparing(shuffle -> first(shuffle.readers())),
                (page, shuffle) -> stages(page, shuffle.readers()))
            .column(
                "Blocks",
                "Blocks that were read",
                Comparator.comparingLong(ShuffleTable::blocks),
                (page, shuffle) -> page.number(blocks(shuffle)));
    for (final Path path : Path.values()) {
      table.column(
          LinkTable.name(path),
          LinkTable.meaning(path) + "; bytes, as metric " + path.label() + ".bytes",
          Comparator.comparingLong(shuffle -> bytes(shuffle, path)),
          (page, shuffle) -> page.size(bytes(shuffle, path)));
    }
    return table
        .column(
            "Fetch wait time",
            "Of all tasks together",
            Comparator.comparingLong(Shuffle::waitNanos),
            (page, shuffle) ->
                page.cell(
                    shuffle.waitNanos(), Html.duration(shuffle.waitNanos() / NANOS_PER_MILLI)))
        .column(
            "Why fallback",
            "Blocks that took the fallback, and why",
            Comparator.comparingLong(ShuffleTable::fellBack),
            ShuffleTable::fallbacks);
  }

  private static int first(final List<Integer> stages) {
    return stages.isEmpty() ? -1 : stages.get(0);
  }

  private static long blocks(final Shuffle shuffle) {
    return shuffle.blocks().values().stream().mapToLong(Long::longValue).sum();
  }

  private static long bytes(final Shuffle shuffle, final Path path) {
    return shuffle.bytes().getOrDefault(path.label(), 0L);
  }

  private static long fellBack(final Shuffle shuffle) {
    return shuffle.fallbacks().values().stream().mapToLong(Long::longValue).sum();
  }

  static void render(final Html page, final UiSnapshot snapshot, final PageQuery query) {
    final List<Shuffle> found =
        snapshot.shuffles().stream().filter(shuffle -> matches(shuffle, query)).toList();
    page.raw("<h4>Shuffles</h4><p class=\"note\">" + found.size() + " of ");
    page.raw(snapshot.shuffles().size() + " shuffles");
    if (snapshot.evictedShuffles() > 0) {
      page.raw("; " + snapshot.evictedShuffles() + " that were used longer ago are not kept");
    }
    page.raw(".</p>");
    TABLE.render(page, found, query);
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
            .map(reason -> reason + " " + shuffle.code(reason))
            .anyMatch(reason -> reason.toLowerCase(Locale.ROOT).contains(text));
  }

  private static void fallbacks(final Html page, final Shuffle shuffle) {
    page.raw("<td>");
    shuffle
        .fallbacks()
        .forEach(
            (reason, count) -> {
              page.raw("<div>").text(count + " blocks: " + reason + " ");
              Runbook.link(page, shuffle.code(reason));
              page.raw("</div>");
            });
    page.raw("</td>");
  }

  private static void stages(final Html page, final List<Integer> stages) {
    page.raw("<td>");
    for (final int stage : stages) {
      page.raw("<a href=\"../stages/stage/?id=" + stage + "&amp;attempt=0\">" + stage + "</a> ");
    }
    page.raw("</td>");
  }
}
