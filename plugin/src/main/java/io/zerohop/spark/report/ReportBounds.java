package io.zerohop.spark.report;

import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Contact;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Keeper;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Removes from a report values that no executor writes: negative, too large, too long or unknown
 * ones, and lists longer than an executor's. An event log may come from anybody who can write into
 * the history server's folder. Not thread safe.
 */
public final class ReportBounds {
  /** The largest number of bytes, blocks or milliseconds; thousands of them add up to a long. */
  public static final long MAX_COUNT = 1L << 48;

  /** The longest wait of a shuffle's readers, all together; two of them add up to a long. */
  public static final long MAX_NANOS = 1L << 61;

  /** The last moment of the year 9999. */
  private static final long MAX_MILLIS = 253_402_300_799_999L;

  private static final int MAX_NAME = 128;
  private static final int MAX_TEXT = ReportCounters.MAX_CHARS + ReportCounters.CUT.length();
  private static final int MAX_CUT_CHARS =
      ReportCounters.MAX_ADVICE_CHARS + ReportCounters.CUT.length();

  private static final Set<String> PATHS =
      Arrays.stream(BlockPath.values())
          .map(BlockPath::label)
          .collect(Collectors.toUnmodifiableSet());

  private static final Set<String> LINKS =
      Arrays.stream(Link.values()).map(Link::label).collect(Collectors.toUnmodifiableSet());

  private static final Set<String> VERDICTS = Set.of("ok", "skip", "warn", "fail");

  private long refused;

  /** Returns how many parts of reports were refused. */
  public long refused() {
    return refused;
  }

  /** Counts something else that no executor writes. */
  public void refuse() {
    refused++;
  }

  /** Returns what of a report may be taken; null if that is nothing. */
  public @Nullable ShuffleReport admit(final ShuffleReport report) {
    if (!isProcess(report.executorId(), report.timeMillis()) || !isText(report.node(), MAX_NAME)) {
      refused++;
      return null;
    }
    final Memory told = report.memory();
    final Memory memory = told != null && isMemory(told) ? told : null;
    refused += told != null && memory == null ? 1 : 0;
    return new ShuffleReport(
        report.executorId(),
        report.node(),
        report.timeMillis(),
        admit(report.flows(), ReportCounters.MAX_FLOWS + LINKS.size(), ReportBounds::isFlow),
        admit(report.shuffles(), ReportCounters.MAX_SHUFFLES, ReportBounds::isUse),
        memory,
        admit(report.contacts(), ReportCounters.MAX_CONTACTS, ReportBounds::isContact),
        admit(report.advice(), ReportCounters.MAX_ADVICE, ReportBounds::isAdvice));
  }

  private <T> List<T> admit(final List<T> all, final int max, final Predicate<T> isValid) {
    final List<T> admitted = all.stream().limit(max).filter(isValid).toList();
    refused += all.size() - admitted.size();
    return admitted;
  }

  /** Returns whether a process may be called so, and may have said something at that time. */
  public static boolean isProcess(final String name, final long timeMillis) {
    return isText(name, MAX_NAME) && timeMillis >= 0 && timeMillis <= MAX_MILLIS;
  }

  private static boolean isText(final String text, final int max) {
    return text != null && text.length() <= max;
  }

  /** Returns whether all of them are numbers that an executor may count. */
  public static boolean areCounts(final long... values) {
    return LongStream.of(values).allMatch(value -> value >= 0 && value <= MAX_COUNT);
  }

  /** Adds counts; a sum of what is within bounds stays there. */
  public static long plus(final long sum, final long more) {
    return Math.min(MAX_COUNT, sum + more);
  }

  private static boolean isFlow(final Flow flow) {
    return isText(flow.owner(), MAX_NAME)
        && flow.path() != null
        && PATHS.contains(flow.path())
        && LINKS.contains(flow.link())
        && areCounts(
            flow.blocks(), flow.bytes(), flow.busyMillis(), flow.fullBytes(), flow.fullMillis());
  }

  private static boolean isUse(final ShuffleUse use) {
    return use.shuffleId() >= 0
        && areStages(use.writers())
        && areStages(use.readers())
        && PATHS.containsAll(use.moved().keySet())
        && use.moved().values().stream().allMatch(ReportBounds::isMoved)
        && use.waitNanos() >= 0
        && use.waitNanos() <= MAX_NANOS
        && areReasons(use.fallbacks().keySet())
        && use.fallbacks().values().stream().allMatch(ReportBounds::areCounts)
        && areReasons(use.causes().keySet())
        && use.causes().values().stream().allMatch(ReportBounds::isCause);
  }

  private static boolean areStages(final Collection<Integer> stages) {
    return stages.size() <= ReportCounters.MAX_STAGES
        && stages.stream().allMatch(stage -> stage >= 0);
  }

  private static boolean isMoved(final Moved moved) {
    return areCounts(moved.blocks(), moved.bytes());
  }

  private static boolean areReasons(final Set<String> reasons) {
    return reasons.size() <= ReportCounters.MAX_REASONS + 1
        && reasons.stream().allMatch(reason -> isText(reason, MAX_TEXT));
  }

  private static boolean isCause(final Cause cause) {
    return isText(cause.code(), MAX_NAME)
        && isText(cause.remedy(), MAX_TEXT)
        && areCounts(cause.bytes());
  }

  private static boolean isMemory(final Memory memory) {
    return memory.figures().values().values().stream().allMatch(ReportBounds::areCounts)
        && (memory.keeper() == null || isKeeper(memory.keeper()));
  }

  private static boolean isKeeper(final Keeper keeper) {
    return isProcess(keeper.release(), keeper.started())
        && areCounts(
            keeper.limit(),
            keeper.held(),
            keeper.left(),
            keeper.outputs(),
            keeper.adopted(),
            keeper.dropped(),
            keeper.removed(),
            keeper.refused(),
            keeper.shared(),
            keeper.sent(),
            keeper.files(),
            keeper.filesLimit());
  }

  private static boolean isContact(final Contact contact) {
    return isText(contact.owner(), MAX_NAME)
        && isText(contact.how(), MAX_TEXT)
        && (contact.link() == null || LINKS.contains(contact.link()))
        && areCounts(contact.expected());
  }

  private static boolean isAdvice(final Advice line) {
    return isText(line.check(), MAX_NAME)
        && line.verdict() != null
        && VERDICTS.contains(line.verdict())
        && isText(line.code(), MAX_NAME)
        && isText(line.what(), MAX_CUT_CHARS)
        && isText(line.where(), MAX_TEXT)
        && isText(line.remedy(), MAX_CUT_CHARS);
  }
}
