package io.zerohop.spark.ui;

import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.ui.UiSnapshot.AdviceLine;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import io.zerohop.spark.ui.UiSnapshot.Shuffle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The page's first part: whether the application's shuffles are fast, and if not, why. Immutable.
 *
 * @param bytes what was read, by link
 * @param reasons why blocks took the fallback, what cost most first
 * @param problems lines of the doctor's with something to fix, the worst first
 */
record Summary(
    UiSnapshot known,
    Map<Link, Long> bytes,
    long total,
    List<Reason> reasons,
    List<AdviceLine> problems) {

  /** From this share of the time of tasks on waiting makes shuffles slow. */
  static final double SLOW_WAIT = 0.2;

  /** From this share on waiting is worth a look. */
  static final double SOME_WAIT = 0.05;

  /** From this share of the bytes on fallbacks are worth a look. */
  static final double SOME_FALLBACK = 0.05;

  private static final List<String> WORST_FIRST = List.of("fail", "warn");
  private static final Map<String, Link> LINKS = new HashMap<>();

  static {
    Arrays.stream(Link.values()).forEach(link -> LINKS.put(link.label(), link));
  }

  enum Verdict {
    /** Nothing is known yet. */
    NONE,
    /** Nothing is to be done. */
    FAST,
    /** Something could be better. */
    LOOK,
    /** Tasks wait for shuffles, or Zerohop has no part in them. */
    SLOW
  }

  /**
   * The reasons of one code why blocks took the fallback, which all have the same remedy. One of an
   * earlier release, which tells no code, stands alone.
   *
   * @param code of the runbook; empty if there is none, or none is known
   * @param remedy what to do; empty if only the runbook says that
   * @param texts how many different ones there are
   * @param bytes about how many bytes; -1 if that is not known
   */
  record Reason(
      String code, String remedy, String text, int texts, long blocks, long bytes, int shuffles) {}

  static Summary of(final UiSnapshot known) {
    final Map<Link, Long> bytes = new EnumMap<>(Link.class);
    for (final Pair pair : known.pairs()) {
      bytes.merge(link(pair), pair.bytes(), Long::sum);
    }
    final long total = bytes.values().stream().mapToLong(Long::longValue).sum();
    final List<AdviceLine> problems =
        WORST_FIRST.stream()
            .flatMap(
                verdict ->
                    known.advice().stream().filter(line -> line.advice().verdict().equals(verdict)))
            .toList();
    return new Summary(known, bytes, total, reasons(known.shuffles()), problems);
  }

  static Link link(final Pair pair) {
    return LINKS.getOrDefault(pair.link(), Link.STAGED);
  }

  /** Returns the link of a label; null if there is none. */
  static @Nullable Link link(final String label) {
    return LINKS.get(label);
  }

  private double fallback() {
    return total == 0 ? 0 : (double) bytes.getOrDefault(Link.STAGED, 0L) / total;
  }

  /** Returns the share of the time of tasks that they waited; negative if it is not known. */
  double waited() {
    return known.tasks().ran() <= 0 ? -1 : (double) known.tasks().waited() / known.tasks().ran();
  }

  Verdict verdict() {
    if (known.aside() != null || waited() >= SLOW_WAIT) {
      return Verdict.SLOW;
    }
    if (waited() >= SOME_WAIT || fallback() >= SOME_FALLBACK || !problems.isEmpty()) {
      return Verdict.LOOK;
    }
    return total == 0 ? Verdict.NONE : Verdict.FAST;
  }

  /** Returns the verdict in one sentence. */
  String headline() {
    if (known.aside() != null) {
      return "Zerohop is not used: shuffles go through Spark's own";
    }
    return switch (verdict()) {
      case NONE -> "Nothing was read yet";
      case FAST -> "Fast: nothing to fix";
      case SLOW -> "Slow: tasks wait for shuffle blocks";
      case LOOK ->
          total == 0
              ? "Something to fix before shuffles are fast"
              : waited() >= SOME_WAIT
                  ? "Could be faster: tasks wait for shuffle blocks"
                  : "Could be better: see what to fix";
    };
  }

  /** Returns what the verdict goes by, a sentence each. */
  List<String> details() {
    final List<String> details = new ArrayList<>();
    if (known.aside() != null) {
      details.add(known.aside().what());
    }
    if (waited() >= 0) {
      details.add("Tasks waited for blocks " + percent(waited()) + " of their time.");
    } else if (total > 0) {
      details.add("How long tasks waited for blocks is not known yet.");
    }
    if (bytes.getOrDefault(Link.STAGED, 0L) > 0) {
      details.add(
          percent(fallback())
              + " of "
              + Html.bytes(total)
              + " took the fallback"
              + (reasons.isEmpty()
                  ? "."
                  : reasons.size() == 1
                      ? ", for one reason."
                      : ", for " + reasons.size() + " reasons."));
    } else if (total > 0) {
      details.add("None of " + Html.bytes(total) + " took the fallback.");
    }
    if (!problems.isEmpty()) {
      details.add(
          problems.size() == 1
              ? "Zerohop's checks found one thing to fix."
              : "Zerohop's checks found " + problems.size() + " things to fix.");
    }
    if (known.aside() == null && total > 0) {
      details.add(
          "The verdict depends on waits, fallbacks and findings of Zerohop's checks, not on"
              + " rates.");
    }
    return details;
  }

  static String percent(final double share) {
    final double percent = 100 * share;
    return percent > 0 && percent < 0.1
        ? "< 0.1 %"
        : String.format(Locale.ROOT, percent < 10 ? "%.1f %%" : "%.0f %%", percent);
  }

  /**
   * Returns the shares of a whole in words, with one decimal, such that what is shown adds up to
   * 100 %.
   */
  static <K> Map<K, String> shares(final Map<K, Long> parts) {
    final long total = parts.values().stream().mapToLong(Long::longValue).sum();
    final Map<K, Double> rests = new LinkedHashMap<>();
    final Map<K, Integer> tenths = new LinkedHashMap<>();
    parts.forEach(
        (part, value) -> {
          final double exact = total == 0 ? 0 : 1e3 * value / total;
          tenths.put(part, (int) exact);
          rests.put(part, exact - (int) exact);
        });
    final int left =
        total == 0 ? 0 : 1_000 - tenths.values().stream().mapToInt(Integer::intValue).sum();
    rests.entrySet().stream()
        .sorted(Map.Entry.<K, Double>comparingByValue().reversed())
        .limit(left)
        .forEach(entry -> tenths.merge(entry.getKey(), 1, Integer::sum));
    final Map<K, String> words = new LinkedHashMap<>();
    tenths.forEach(
        (part, share) ->
            words.put(
                part,
                share == 0 && parts.getOrDefault(part, 0L) > 0
                    ? "< 0.1 %"
                    : String.format(
                        Locale.ROOT, share == 1_000 ? "%.0f %%" : "%.1f %%", share / 10.0)));
    return words;
  }

  private static List<Reason> reasons(final List<Shuffle> shuffles) {
    final Map<ReasonKey, ReasonSum> sums = new LinkedHashMap<>();
    for (final Shuffle shuffle : shuffles) {
      shuffle
          .fallbacks()
          .forEach(
              (reason, blocks) -> {
                final ReasonKey key = ReasonKey.of(reason, shuffle.causes().get(reason));
                sums.computeIfAbsent(key, ReasonSum::new).add(shuffle, reason, blocks);
              });
    }
    return sums.values().stream()
        .map(ReasonSum::reason)
        .sorted(
            Comparator.comparingLong(Reason::bytes).thenComparingLong(Reason::blocks).reversed())
        .toList();
  }

  /**
   * The key by which reasons form one line.
   *
   * @param text of a reason without a code; otherwise empty
   */
  private record ReasonKey(String code, String remedy, String text) {
    static ReasonKey of(final String reason, final @Nullable Cause cause) {
      return cause == null || cause.code().isEmpty()
          ? new ReasonKey("", cause == null ? "" : cause.remedy(), reason)
          : new ReasonKey(cause.code(), cause.remedy(), "");
    }
  }

  private static final class ReasonSum {
    private final ReasonKey key;
    private final Map<String, Long> texts = new LinkedHashMap<>();
    private final Set<Integer> shuffles = new HashSet<>();
    private long blocks;
    private long bytes = -1;

    ReasonSum(final ReasonKey key) {
      this.key = key;
    }

    void add(final Shuffle shuffle, final String reason, final long more) {
      texts.merge(reason, more, Long::sum);
      shuffles.add(shuffle.shuffleId());
      blocks += more;
      final Cause cause = shuffle.causes().get(reason);
      if (cause != null) {
        bytes = Math.max(0, bytes) + cause.bytes();
      }
    }

    Reason reason() {
      final String most =
          texts.entrySet().stream()
              .max(Map.Entry.<String, Long>comparingByValue())
              .orElseThrow()
              .getKey();
      return new Reason(
          key.code(), key.remedy(), most, texts.size(), blocks, bytes, shuffles.size());
    }
  }
}
