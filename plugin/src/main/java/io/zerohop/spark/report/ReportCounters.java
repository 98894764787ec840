package io.zerohop.spark.report;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Contact;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import io.zerohop.spark.watch.ExecutorWatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Counts of an executor between two reports. Bounded: owners and reasons that would not fit into
 * one report are counted under {@link #OTHERS}; shuffles, stages, contacts and advice beyond the
 * limits are left out. Thread safe.
 */
public final class ReportCounters implements ContactListener {
  /** Blocks that are handed out within one slot count as having taken the whole of it. */
  public static final long SLOT_MILLIS = 10;

  /** Stands for all owners and reasons beyond the limits. */
  public static final String OTHERS = "others";

  static final int MAX_FLOWS = 2_000;
  static final int MAX_SHUFFLES = 500;
  static final int MAX_STAGES = 32;
  static final int MAX_REASONS = 8;
  static final int MAX_CONTACTS = 200;
  static final int MAX_ADVICE = 50;
  static final int MAX_CHARS = 300;

  /** Slots of a flow whose bytes are known, from its first one on: those of an interval. */
  private static final int MAX_SLOTS = 512;

  /** Of advice, which is told once. */
  static final int MAX_ADVICE_CHARS = 1_000;

  /** What a text ends with that is shortened. */
  static final String CUT = "...";

  static final long SLOT_NANOS = SLOT_MILLIS * 1_000_000;

  private Map<FlowKey, FlowCount> flows = new HashMap<>();
  private Map<Integer, UseCount> shuffles = new HashMap<>();
  private List<Contact> contacts = new ArrayList<>();
  private List<Advice> advice = new ArrayList<>();

  /** A task of a stage writes a shuffle. */
  public void writes(final int shuffleId, final int stageId) {
    addStage(shuffleId, stageId, true);
  }

  /** A task of a stage reads a shuffle. */
  public void reads(final int shuffleId, final int stageId) {
    addStage(shuffleId, stageId, false);
  }

  private synchronized void addStage(final int shuffleId, final int stageId, final boolean writes) {
    final UseCount use = use(shuffleId);
    if (use != null) {
      final TreeSet<Integer> stages = writes ? use.writers : use.readers;
      if (stages.size() < MAX_STAGES) {
        stages.add(stageId);
      }
    }
  }

  /**
   * Adds what one reader has counted in one slot.
   *
   * @param slot of {@link System#nanoTime}, in slots
   * @param moved blocks that have come
   * @param waitNanos how long it stood still
   */
  synchronized void add(
      final int shuffleId, final long slot, final Map<FlowKey, Moved> moved, final long waitNanos) {
    final UseCount use = use(shuffleId);
    moved.forEach(
        (key, count) -> {
          flow(key).add(count, slot);
          if (use != null) {
            use.moved.merge(key.link().path(), count, Moved::plus);
          }
        });
    if (use != null) {
      use.waitNanos += waitNanos;
    }
  }

  /** Blocks have to be staged. */
  synchronized void fellBack(
      final int shuffleId, final long blocks, final long bytes, final Message reason) {
    final UseCount use = use(shuffleId);
    if (use != null) {
      final String known = shorten(reason.reasoned());
      final boolean room = use.fallbacks.size() < MAX_REASONS || use.fallbacks.containsKey(known);
      use.fallbacks.merge(room ? known : OTHERS, blocks, Long::sum);
      use.causes.merge(
          room ? known : OTHERS,
          room ? new Cause(reason.code(), shorten(reason.remedy()), bytes) : Cause.ofOthers(bytes),
          (one, more) -> one.withBytes(one.bytes() + more.bytes()));
    }
  }

  @Override
  public synchronized void met(
      final String executorId, final String how, final Link link, final long expected) {
    if (contacts.size() < MAX_CONTACTS) {
      contacts.add(new Contact(executorId, shorten(how), link.label(), expected));
    }
  }

  /** Records a problem of this executor. */
  public synchronized void advise(final Advice line) {
    if (advice.size() < MAX_ADVICE) {
      advice.add(
          new Advice(
              line.check(),
              line.verdict(),
              line.code(),
              shorten(line.what(), MAX_ADVICE_CHARS),
              shorten(line.where()),
              shorten(line.remedy(), MAX_ADVICE_CHARS)));
    }
  }

  private FlowCount flow(final FlowKey key) {
    final boolean room = flows.size() < MAX_FLOWS || flows.containsKey(key);
    return flows.computeIfAbsent(
        room ? key : new FlowKey(OTHERS, key.link()), any -> new FlowCount());
  }

  private @Nullable UseCount use(final int shuffleId) {
    final UseCount known = shuffles.get(shuffleId);
    if (known != null || shuffles.size() >= MAX_SHUFFLES) {
      return known;
    }
    final UseCount added = new UseCount();
    shuffles.put(shuffleId, added);
    return added;
  }

  private static String shorten(final String text) {
    return shorten(text, MAX_CHARS);
  }

  private static String shorten(final String text, final int most) {
    return text.length() <= most ? text : text.substring(0, most) + CUT;
  }

  /** Returns whether anything was counted since the last report. */
  public synchronized boolean isEmpty() {
    return flows.isEmpty() && shuffles.isEmpty() && contacts.isEmpty() && advice.isEmpty();
  }

  /** A report of what was counted; counting begins anew. */
  public synchronized ShuffleReport drain(
      final String executorId, final String node, final Memory memory) {
    final List<Flow> moved = new ArrayList<>();
    flows.forEach((key, flow) -> moved.add(flow.report(key)));
    final List<ShuffleUse> uses = new ArrayList<>();
    shuffles.forEach((id, use) -> uses.add(use.report(id)));
    final ShuffleReport report =
        new ShuffleReport(
            executorId, node, System.currentTimeMillis(), moved, uses, memory, contacts, advice);
    flows = new HashMap<>();
    shuffles = new HashMap<>();
    contacts = new ArrayList<>();
    advice = new ArrayList<>();
    return report;
  }

  /** Identifies a flow. */
  record FlowKey(String owner, Link link) {}

  /**
   * Bytes of each slot. Readers tell of a slot when it is over, some of them late; what is told of
   * slots before the first or far behind it has bytes and takes time, but fills none.
   */
  private static final class FlowCount {
    private Moved moved = Moved.NONE;
    private long firstSlot;
    private long[] slots = {};
    private long strays;

    void add(final Moved more, final long slot) {
      moved = moved.plus(more);
      firstSlot = slots.length == 0 ? slot : firstSlot;
      final long at = slot - firstSlot;
      if (at < 0 || at >= MAX_SLOTS) {
        strays++;
        return;
      }
      if (at >= slots.length) {
        slots = Arrays.copyOf(slots, (int) Math.min(MAX_SLOTS, 2 * (at + 1)));
      }
      slots[(int) at] += more.bytes();
    }

    Flow report(final FlowKey key) {
      long busy = strays;
      long full = 0;
      long fullBytes = 0;
      for (int i = 0; i < slots.length; i++) {
        if (slots[i] > 0) {
          busy++;
          if (i > 0 && i < slots.length - 1 && slots[i - 1] > 0 && slots[i + 1] > 0) {
            full++;
            fullBytes += slots[i];
          }
        }
      }
      return new Flow(
          key.owner(),
          key.link().path().label(),
          key.link().label(),
          moved.blocks(),
          moved.bytes(),
          busy * SLOT_MILLIS,
          fullBytes,
          full * SLOT_MILLIS);
    }
  }

  private static final class UseCount {
    private final TreeSet<Integer> writers = new TreeSet<>();
    private final TreeSet<Integer> readers = new TreeSet<>();
    private final Map<BlockPath, Moved> moved = new EnumMap<>(BlockPath.class);
    private final Map<String, Long> fallbacks = new HashMap<>();
    private final Map<String, Cause> causes = new HashMap<>();
    private long waitNanos;

    ShuffleUse report(final int shuffleId) {
      final Map<String, Moved> byPath = new HashMap<>();
      moved.forEach((path, count) -> byPath.put(path.label(), count));
      return new ShuffleUse(
          shuffleId,
          new ArrayList<>(writers),
          new ArrayList<>(readers),
          byPath,
          waitNanos,
          fallbacks,
          causes);
    }
  }

  /**
   * Counts of one reader in the current time slot. They go to the executor's {@link ReportCounters}
   * once in a slot and not for each block, because all tasks share its lock. To be flushed when the
   * reader ends. Thread safe, since a step of the reader may outlast its task for a moment; what is
   * counted after that is told at once.
   */
  public static final class ReaderCounts implements ExecutorWatch.Reader {
    private final ReportCounters executor;
    private final int shuffleId;
    private Map<FlowKey, Moved> flows = new HashMap<>();
    private long slot;
    private long waitNanos;
    private boolean ended;

    public ReaderCounts(final ReportCounters executor, final int shuffleId) {
      this.executor = executor;
      this.shuffleId = shuffleId;
    }

    @Override
    public void fetched(
        final BlockSource source, final Link link, final List<Block> blocks, final long bytes) {
      fetched(source.executorId(), link, blocks.size(), bytes);
    }

    void fetched(final String owner, final Link link, final long blocks, final long bytes) {
      fetched(owner, link, blocks, bytes, System.nanoTime() / ReportCounters.SLOT_NANOS);
    }

    synchronized void fetched(
        final String owner, final Link link, final long blocks, final long bytes, final long now) {
      if (now != slot) {
        tell();
        slot = now;
      }
      flows.merge(new FlowKey(owner, link), new Moved(blocks, bytes), Moved::plus);
      if (ended) {
        tell();
      }
    }

    @Override
    public synchronized void waited(final long nanos) {
      waitNanos += nanos;
      if (ended) {
        tell();
      }
    }

    @Override
    public void fellBack(final BlockSource source, final List<Block> blocks, final Message reason) {
      executor.fellBack(
          shuffleId, blocks.size(), blocks.stream().mapToLong(Block::bytes).sum(), reason);
    }

    /** Tells what was counted. */
    @Override
    public synchronized void end() {
      ended = true;
      tell();
    }

    private void tell() {
      if (!flows.isEmpty() || waitNanos > 0) {
        executor.add(shuffleId, slot, flows, waitNanos);
        flows = new HashMap<>();
        waitNanos = 0;
      }
    }
  }
}
