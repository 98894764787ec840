package io.zerohop.spark.report;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.spark.report.ShuffleReport.Contact;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * What an executor counts between two reports. Bounded: owners and reasons that would not fit into
 * one report are counted under {@link #OTHERS}; shuffles, stages, contacts and advice beyond the
 * limits are left out. Thread safe.
 */
public final class ReportCounters implements ContactListener {
  /** Blocks that are handed out within one slot count as having taken the whole of it. */
  public static final long SLOT_MILLIS = 10;

  /** Stands for all owners and reasons beyond the limits. */
  public static final String OTHERS = "others";

  static final int MOST_FLOWS = 2_000;
  static final int MOST_SHUFFLES = 500;
  static final int MOST_STAGES = 32;
  static final int MOST_REASONS = 8;
  static final int MOST_CONTACTS = 200;
  static final int MOST_ADVICE = 50;
  static final int MOST_CHARS = 300;

  /** Of advice, which is told once. */
  static final int MOST_ADVICE_CHARS = 1_000;

  /** What a text ends with that is shortened. */
  static final String CUT = "...";

  static final long SLOT_NANOS = SLOT_MILLIS * 1_000_000;

  private final boolean enabled;
  private Map<String, Map<Path, FlowCount>> flows = new HashMap<>();
  private Map<Integer, UseCount> shuffles = new HashMap<>();
  private List<Contact> contacts = new ArrayList<>();
  private List<Advice> advice = new ArrayList<>();

  private int flowCount;

  /**
   * @param enabled whether anybody takes what is counted
   */
  public ReportCounters(final boolean enabled) {
    this.enabled = enabled;
  }

  /** Whether anybody takes what is counted. */
  boolean isEnabled() {
    return enabled;
  }

  /** A task of a stage writes a shuffle. */
  public void writes(final int shuffleId, final int stageId) {
    if (enabled) {
      addStage(shuffleId, stageId, true);
    }
  }

  /** A task of a stage reads a shuffle. */
  public void reads(final int shuffleId, final int stageId) {
    if (enabled) {
      addStage(shuffleId, stageId, false);
    }
  }

  private synchronized void addStage(final int shuffleId, final int stageId, final boolean writes) {
    final UseCount use = use(shuffleId);
    if (use != null) {
      final TreeSet<Integer> stages = writes ? use.writers : use.readers;
      if (stages.size() < MOST_STAGES) {
        stages.add(stageId);
      }
    }
  }

  /**
   * Adds what one reader has counted in one slot.
   *
   * @param slot of {@link System#nanoTime}, in slots
   * @param byOwner blocks that have come, by their owner
   * @param waitNanos how long it stood still
   */
  synchronized void add(
      final int shuffleId,
      final long slot,
      final Map<String, Map<Path, MovedCount>> byOwner,
      final long waitNanos) {
    final UseCount use = use(shuffleId);
    byOwner.forEach(
        (owner, paths) ->
            paths.forEach(
                (path, count) -> {
                  flow(owner, path).add(count, slot);
                  if (use != null) {
                    use.moved.computeIfAbsent(path, any -> new MovedCount()).add(count);
                  }
                }));
    if (use != null) {
      use.waitNanos += waitNanos;
    }
  }

  /** Blocks have to be staged. */
  void fellBack(final int shuffleId, final long blocks, final Message reason) {
    if (enabled) {
      addFallback(shuffleId, blocks, reason.text());
    }
  }

  private synchronized void addFallback(
      final int shuffleId, final long blocks, final String reason) {
    final UseCount use = use(shuffleId);
    if (use != null) {
      final String known = shorten(reason);
      final boolean room = use.fallbacks.size() < MOST_REASONS || use.fallbacks.containsKey(known);
      use.fallbacks.merge(room ? known : OTHERS, blocks, Long::sum);
    }
  }

  @Override
  public synchronized void met(final String executorId, final String how) {
    if (enabled && contacts.size() < MOST_CONTACTS) {
      contacts.add(new Contact(executorId, shorten(how)));
    }
  }

  /** Something is not as it should be here. */
  public synchronized void advise(final Advice line) {
    if (enabled && advice.size() < MOST_ADVICE) {
      advice.add(
          new Advice(
              line.check(),
              line.verdict(),
              line.code(),
              shorten(line.what(), MOST_ADVICE_CHARS),
              shorten(line.where()),
              shorten(line.remedy(), MOST_ADVICE_CHARS)));
    }
  }

  private FlowCount flow(final String owner, final Path path) {
    Map<Path, FlowCount> paths = flows.get(owner);
    if (paths == null || !paths.containsKey(path)) {
      final boolean room = flowCount < MOST_FLOWS;
      flowCount += room ? 1 : 0;
      final String as = room ? owner : OTHERS;
      paths = flows.computeIfAbsent(as, any -> new EnumMap<>(Path.class));
      return paths.computeIfAbsent(path, any -> new FlowCount());
    }
    return paths.get(path);
  }

  private UseCount use(final int shuffleId) {
    final UseCount known = shuffles.get(shuffleId);
    if (known != null || shuffles.size() >= MOST_SHUFFLES) {
      return known;
    }
    final UseCount added = new UseCount();
    shuffles.put(shuffleId, added);
    return added;
  }

  private static String shorten(final String text) {
    return shorten(text, MOST_CHARS);
  }

  private static String shorten(final String text, final int most) {
    return text.length() <= most ? text : text.substring(0, most) + CUT;
  }

  /** Whether anything was counted since the last report. */
  public synchronized boolean isEmpty() {
    return flows.isEmpty() && shuffles.isEmpty() && contacts.isEmpty() && advice.isEmpty();
  }

  /**
   * A report of what was counted; counting begins anew.
   *
   * @param memory the executor's pools now
   */
  public synchronized ShuffleReport drain(final String executorId, final Memory memory) {
    final List<Flow> moved = new ArrayList<>();
    flows.forEach(
        (owner, paths) -> paths.forEach((path, flow) -> moved.add(flow.report(owner, path))));
    final List<ShuffleUse> uses = new ArrayList<>();
    shuffles.forEach((id, use) -> uses.add(use.report(id)));
    final ShuffleReport report =
        new ShuffleReport(
            executorId, System.currentTimeMillis(), moved, uses, memory, contacts, advice);
    flows = new HashMap<>();
    shuffles = new HashMap<>();
    contacts = new ArrayList<>();
    advice = new ArrayList<>();
    flowCount = 0;
    return report;
  }

  private static final class FlowCount {
    private final MovedCount moved = new MovedCount();
    private long lastSlot = Long.MIN_VALUE;
    private long busySlots;

    void add(final MovedCount more, final long slot) {
      moved.add(more);
      busySlots += slot == lastSlot ? 0 : 1;
      lastSlot = slot;
    }

    Flow report(final String from, final Path path) {
      return new Flow(from, path.label(), moved.blocks(), moved.bytes(), busySlots * SLOT_MILLIS);
    }
  }

  private static final class UseCount {
    private final TreeSet<Integer> writers = new TreeSet<>();
    private final TreeSet<Integer> readers = new TreeSet<>();
    private final Map<Path, MovedCount> moved = new EnumMap<>(Path.class);
    private final Map<String, Long> fallbacks = new HashMap<>();
    private long waitNanos;

    ShuffleUse report(final int shuffleId) {
      final Map<String, Moved> byPath = new HashMap<>();
      moved.forEach(
          (path, count) -> byPath.put(path.label(), new Moved(count.blocks(), count.bytes())));
      return new ShuffleUse(
          shuffleId,
          new ArrayList<>(writers),
          new ArrayList<>(readers),
          byPath,
          waitNanos,
          fallbacks);
    }
  }
}
