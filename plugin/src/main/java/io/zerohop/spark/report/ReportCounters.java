package io.zerohop.spark.report;

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
 * What an executor counts between two reports. Bounded: what would not fit into one report is
 * counted under {@link #OTHERS}, or dropped if it is text. Thread safe.
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
  static final int MOST_CHARS = 300;

  private static final long SLOT_NANOS = SLOT_MILLIS * 1_000_000;

  private final boolean enabled;
  private Map<String, Map<Path, FlowCount>> flows = new HashMap<>();
  private Map<Integer, UseCount> shuffles = new HashMap<>();
  private List<Contact> contacts = new ArrayList<>();

  /** The last slot of each flow, kept over reports. */
  private final Map<String, Map<Path, Long>> slots = new HashMap<>();

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
  public synchronized void writes(final int shuffleId, final int stageId) {
    final UseCount use = use(shuffleId);
    if (use != null && use.writers.size() < MOST_STAGES) {
      use.writers.add(stageId);
    }
  }

  /** A task of a stage reads a shuffle. */
  public synchronized void reads(final int shuffleId, final int stageId) {
    final UseCount use = use(shuffleId);
    if (use != null && use.readers.size() < MOST_STAGES) {
      use.readers.add(stageId);
    }
  }

  /** Blocks of one shuffle have come from an owner. */
  public synchronized void fetched(
      final int shuffleId,
      final String owner,
      final Path path,
      final long blocks,
      final long bytes) {
    if (!enabled) {
      return;
    }
    final FlowCount flow = flow(owner, path);
    flow.moved.add(blocks, bytes);
    final long slot = System.nanoTime() / SLOT_NANOS;
    final Long last =
        slots.computeIfAbsent(flow.owner, any -> new EnumMap<>(Path.class)).put(path, slot);
    if (last == null || last != slot) {
      flow.busySlots++;
    }
    final UseCount use = use(shuffleId);
    if (use != null) {
      use.moved.computeIfAbsent(path, any -> new MovedCount()).add(blocks, bytes);
    }
  }

  /** A reader of a shuffle stood still. */
  public synchronized void waited(final int shuffleId, final long nanos) {
    final UseCount use = use(shuffleId);
    if (use != null) {
      use.waitNanos += nanos;
    }
  }

  /** Blocks have to be staged. */
  public synchronized void fellBack(final int shuffleId, final long blocks, final String reason) {
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

  private FlowCount flow(final String owner, final Path path) {
    Map<Path, FlowCount> paths = flows.get(owner);
    if (paths == null || !paths.containsKey(path)) {
      final boolean room = flowCount < MOST_FLOWS;
      flowCount += room ? 1 : 0;
      final String as = room ? owner : OTHERS;
      paths = flows.computeIfAbsent(as, any -> new EnumMap<>(Path.class));
      return paths.computeIfAbsent(path, any -> new FlowCount(as));
    }
    return paths.get(path);
  }

  private UseCount use(final int shuffleId) {
    if (!enabled) {
      return null;
    }
    final UseCount known = shuffles.get(shuffleId);
    if (known != null || shuffles.size() >= MOST_SHUFFLES) {
      return known;
    }
    final UseCount added = new UseCount();
    shuffles.put(shuffleId, added);
    return added;
  }

  private static String shorten(final String text) {
    return text.length() <= MOST_CHARS ? text : text.substring(0, MOST_CHARS) + "...";
  }

  /** Whether anything was counted since the last report. */
  public synchronized boolean isEmpty() {
    return flows.isEmpty() && shuffles.isEmpty() && contacts.isEmpty();
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
        new ShuffleReport(executorId, System.currentTimeMillis(), moved, uses, memory, contacts);
    flows = new HashMap<>();
    shuffles = new HashMap<>();
    contacts = new ArrayList<>();
    flowCount = 0;
    if (slots.size() > MOST_FLOWS) {
      slots.clear();
    }
    return report;
  }

  private static final class MovedCount {
    private long blocks;
    private long bytes;

    void add(final long moreBlocks, final long moreBytes) {
      blocks += moreBlocks;
      bytes += moreBytes;
    }
  }

  private static final class FlowCount {
    private final String owner;
    private final MovedCount moved = new MovedCount();
    private long busySlots;

    FlowCount(final String owner) {
      this.owner = owner;
    }

    Flow report(final String from, final Path path) {
      return new Flow(from, path.label(), moved.blocks, moved.bytes, busySlots * SLOT_MILLIS);
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
          (path, count) -> byPath.put(path.label(), new Moved(count.blocks, count.bytes)));
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
