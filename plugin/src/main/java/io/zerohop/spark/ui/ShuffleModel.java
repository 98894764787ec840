package io.zerohop.spark.ui;

import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure.Figures;
import io.zerohop.spark.report.ReportBounds;
import io.zerohop.spark.report.ReportCounters;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.ui.NodeMatrix.ExecutorOrder;
import io.zerohop.spark.ui.UiSnapshot.AdviceLine;
import io.zerohop.spark.ui.UiSnapshot.ContactLine;
import io.zerohop.spark.ui.UiSnapshot.Pair;
import io.zerohop.spark.ui.UiSnapshot.Point;
import io.zerohop.spark.ui.UiSnapshot.Series;
import io.zerohop.spark.ui.UiSnapshot.Shuffle;
import io.zerohop.spark.ui.UiSnapshot.TaskTime;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * The reports of all executors, added up, as Spark's listener bus or an event log has them.
 * Bounded, whatever the reports say: values that no executor writes are refused, sums stop at a
 * limit, pairs of executors beyond theirs are added up by node, the shuffle that was used least
 * recently goes, and of the points of an executor every second one. Thread safe.
 */
final class ShuffleModel extends SparkListener {
  /** Before the name of a node: those of its executors whose pairs are not kept. */
  static final String OTHERS_OF = ReportCounters.OTHERS + " of ";

  /** Of names that are kept only to be counted. */
  private static final int MAX_LEFT_OUT = 10_000;

  /** Of executors whose machine is known. */
  private static final int MAX_NODES = 10_000;

  private final Limits limits;
  private final ReportBounds bounds = new ReportBounds();
  private final Map<Pair.Key, Pair> pairs = new HashMap<>();

  /** Pairs that found no room there, by nodes; an executor stands for all of its node. */
  private final Map<Pair.Key, Pair> nodePairs = new HashMap<>();

  /** The executor that stands for a node, by what is known of the node. */
  private final Map<String, String> standing = new HashMap<>();

  /** The least recently used first. */
  private final Map<Integer, ShuffleSum> shuffles = new LinkedHashMap<>(16, 0.75f, true);

  private final Map<String, List<Point>> memory = new LinkedHashMap<>();

  /** Those of them that are gone, the first one first: they make room for others. */
  private final Set<String> gone = new LinkedHashSet<>();

  /** Executors that report and whose pools are not kept, since there are so many. */
  private final Set<String> leftOut = new HashSet<>();

  private final Deque<ContactLine> contacts = new ArrayDeque<>();
  private final Map<Advice, AdviceLine> advice = new LinkedHashMap<>();

  /** Machines of executors, by what they report; names of hosts are Spark's. */
  private final Map<String, String> machines = new HashMap<>();

  private final Map<String, String> hosts = new HashMap<>();
  private final Map<String, Long> expected = new TreeMap<>();
  private final NodeKeepers keepers = new NodeKeepers();
  private final RateLine rates;
  private long ranMillis;
  private long waitedMillis;
  private long evictedShuffles;
  private long evictedContacts;

  /**
   * The limits of what is kept.
   *
   * @param pairs pairs of executors, times links; of nodes four times as many
   * @param stages stages of a shuffle that write it, and as many that read it
   * @param advice lines of the doctor's
   * @param processes processes that are named with each of them
   */
  record Limits(
      int pairs,
      int shuffles,
      int executors,
      int points,
      int contacts,
      int reasons,
      int stages,
      int advice,
      int processes) {
    static final Limits DEFAULT = new Limits(10_000, 1_000, 200, 120, 1_000, 16, 64, 200, 8);
  }

  ShuffleModel() {
    this(Limits.DEFAULT);
  }

  ShuffleModel(final Limits limits) {
    this.limits = limits;
    this.rates = new RateLine(limits.points);
  }

  @Override
  public void onOtherEvent(final SparkListenerEvent event) {
    if (event instanceof ShuffleReportEvent known) {
      if (known.report() == null) {
        refuse();
      } else {
        add(known.report());
      }
    }
  }

  @Override
  public void onExecutorAdded(final SparkListenerExecutorAdded event) {
    isOn(event.executorId(), event.executorInfo().executorHost());
  }

  @Override
  public void onTaskEnd(final SparkListenerTaskEnd event) {
    final TaskMetrics metrics = event.taskMetrics();
    if (metrics != null && metrics.shuffleReadMetrics().totalBlocksFetched() > 0) {
      ran(metrics.executorRunTime(), metrics.shuffleReadMetrics().fetchWaitTime());
    }
  }

  @Override
  public void onExecutorRemoved(final SparkListenerExecutorRemoved event) {
    removed(event.executorId(), event.time());
  }

  private synchronized void refuse() {
    bounds.refuse();
  }

  /** Adds what an executor reports, as far as it is within bounds. */
  synchronized void add(final ShuffleReport given) {
    final ShuffleReport report = bounds.admit(given);
    if (report == null) {
      return;
    }
    report.flows().forEach(flow -> add(report.executorId(), flow));
    if (!report.node().isEmpty() && machines.size() < MAX_NODES) {
      machines.put(report.executorId(), report.node());
    }
    rates.add(report);
    report.shuffles().forEach(this::add);
    report.advice().forEach(line -> add(report.executorId(), line));
    if (report.memory() != null) {
      add(report.executorId(), report.timeMillis(), report.memory().figures());
      keepers.add(report);
    }
    for (final ShuffleReport.Contact contact : report.contacts()) {
      if (contact.link() != null && contact.expected() > 0) {
        expected.merge(contact.link(), contact.expected(), Math::min);
      }
      contacts.add(
          new ContactLine(
              report.timeMillis(), report.executorId(), contact.owner(), contact.how()));
      if (contacts.size() > limits.contacts) {
        contacts.remove();
        evictedContacts++;
      }
    }
  }

  private void add(final String process, final Advice line) {
    // Many executors say the same with other numbers.
    final Advice kind =
        line.remedy().isEmpty()
            ? line
            : new Advice(line.check(), line.verdict(), line.code(), "", "", line.remedy());
    if (advice.size() < limits.advice || advice.containsKey(kind)) {
      final AdviceLine known = advice.getOrDefault(kind, new AdviceLine(line, List.of(), 0));
      advice.put(kind, known.alsoOf(process, limits.processes));
    }
  }

  private void add(final String reader, final ShuffleReport.Flow flow) {
    final Pair pair = Pair.of(reader, flow);
    if (pairs.size() < limits.pairs || pairs.containsKey(pair.key())) {
      pairs.merge(pair.key(), pair, Pair::plus);
      return;
    }
    final Pair nodes = pair.between(standing(reader), standing(flow.owner()));
    final boolean room = nodePairs.size() < 4 * limits.pairs || nodePairs.containsKey(nodes.key());
    final Pair as = room ? nodes : pair.between(ReportCounters.OTHERS, ReportCounters.OTHERS);
    nodePairs.merge(as.key(), as, Pair::plus);
  }

  /** Returns the executor that stands for all of an executor's node. */
  private String standing(final String executor) {
    final String machine = machines.get(executor);
    final String host = hosts.get(executor);
    return machine == null && host == null
        ? ReportCounters.OTHERS
        : standing.computeIfAbsent(
            machine == null ? "host " + host : "machine " + machine, any -> executor);
  }

  private void add(final ShuffleReport.ShuffleUse use) {
    final ShuffleSum sum = shuffles.computeIfAbsent(use.shuffleId(), any -> new ShuffleSum());
    addAtMost(sum.writers, use.writers());
    addAtMost(sum.readers, use.readers());
    use.moved()
        .forEach(
            (path, moved) -> {
              sum.blocks.merge(path, moved.blocks(), ReportBounds::plus);
              sum.bytes.merge(path, moved.bytes(), ReportBounds::plus);
            });
    sum.waitNanos = Math.min(ReportBounds.MAX_NANOS, sum.waitNanos + use.waitNanos());
    use.fallbacks()
        .forEach(
            (reason, blocks) -> {
              final boolean room =
                  sum.fallbacks.size() < limits.reasons || sum.fallbacks.containsKey(reason);
              final String as = room ? reason : ReportCounters.OTHERS;
              sum.fallbacks.merge(as, blocks, ReportBounds::plus);
              final Cause cause = use.causes().get(reason);
              if (cause != null) {
                sum.causes.merge(
                    as,
                    room ? cause : Cause.ofOthers(cause.bytes()),
                    (one, more) -> one.withBytes(ReportBounds.plus(one.bytes(), more.bytes())));
              }
            });
    if (shuffles.size() > limits.shuffles) {
      shuffles.remove(shuffles.keySet().iterator().next());
      evictedShuffles++;
    }
  }

  private void addAtMost(final Set<Integer> stages, final List<Integer> more) {
    for (final int stage : more) {
      if (stages.size() < limits.stages) {
        stages.add(stage);
      }
    }
  }

  private void add(final String executorId, final long timeMillis, final Figures now) {
    if (!hasRoom(executorId)) {
      return;
    }
    gone.remove(executorId);
    add(memory.computeIfAbsent(executorId, any -> new ArrayList<>()), new Point(timeMillis, now));
  }

  /** Whether an executor's pools are kept; one that is gone makes room. */
  private boolean hasRoom(final String executorId) {
    if (memory.containsKey(executorId) || memory.size() < limits.executors) {
      return true;
    }
    if (gone.isEmpty()) {
      if (leftOut.size() < MAX_LEFT_OUT) {
        leftOut.add(executorId);
      }
      return false;
    }
    final String first = gone.iterator().next();
    gone.remove(first);
    memory.remove(first);
    leftOut.remove(executorId);
    return true;
  }

  /**
   * An executor is gone, and what it held in memory with it.
   *
   * @param timeMillis when, in milliseconds since 1970
   */
  synchronized void removed(final String executorId, final long timeMillis) {
    if (!ReportBounds.isProcess(executorId, timeMillis)) {
      return;
    }
    leftOut.remove(executorId);
    keepers.removed(executorId);
    final List<Point> points = memory.get(executorId);
    if (points != null) {
      gone.add(executorId);
      final Point last = points.get(points.size() - 1);
      add(points, new Point(Math.max(timeMillis, last.timeMillis()), last.figures().atEnd()));
    }
  }

  private void add(final List<Point> points, final Point point) {
    points.add(point);
    if (points.size() > limits.points) {
      // The first and the last stay, so that the time that is shown does not shrink.
      for (int i = points.size() - 2; i > 0; i -= 2) {
        points.remove(i);
      }
    }
  }

  /** An executor runs on a host, as Spark calls it. */
  synchronized void isOn(final String executorId, final String host) {
    if (ReportBounds.isProcess(executorId, 0)
        && ReportBounds.isProcess(host, 0)
        && hosts.size() < MAX_NODES) {
      hosts.put(executorId, host);
    }
  }

  /**
   * A task that has read shuffles has ended.
   *
   * @param ran how long it ran, in milliseconds
   * @param waited the part of it in which it waited for blocks
   */
  synchronized void ran(final long ran, final long waited) {
    if (ReportBounds.areCounts(ran, waited)) {
      ranMillis = ReportBounds.plus(ranMillis, ran);
      waitedMillis = ReportBounds.plus(waitedMillis, Math.min(ran, waited));
    } else {
      bounds.refuse();
    }
  }

  UiSnapshot snapshot() {
    final UiSnapshot copy = copy(); // Sorted where nobody waits for it.
    copy.pairs()
        .sort(
            Comparator.comparing(Pair::reader, ExecutorOrder.INSTANCE)
                .thenComparing(Pair::owner, ExecutorOrder.INSTANCE)
                .thenComparing(Pair::link));
    copy.shuffles().sort(Comparator.comparingInt(Shuffle::shuffleId));
    copy.memory().sort(Comparator.comparing(Series::executorId, ExecutorOrder.INSTANCE));
    return copy;
  }

  private synchronized UiSnapshot copy() {
    final Map<String, String> nodes = nodes();
    final List<Pair> pairList = new ArrayList<>(pairs.values());
    final Map<Pair.Key, Pair> others = new HashMap<>();
    for (final Pair sum : nodePairs.values()) {
      final Pair as = sum.between(othersOf(sum.reader(), nodes), othersOf(sum.owner(), nodes));
      others.merge(as.key(), as, Pair::plus);
    }
    pairList.addAll(others.values());
    final List<Shuffle> shuffleList = new ArrayList<>();
    shuffles.forEach((id, sum) -> shuffleList.add(sum.copy(id)));
    final List<Series> series = new ArrayList<>();
    memory.forEach((id, points) -> series.add(new Series(id, List.copyOf(points))));
    return new UiSnapshot(
        pairList,
        shuffleList,
        series,
        List.copyOf(contacts),
        new ArrayList<>(advice.values()),
        nodes,
        new TaskTime(ranMillis, waitedMillis),
        new TreeMap<>(expected),
        rates.rates(),
        keepers.lines(nodes),
        evictedShuffles,
        evictedContacts,
        leftOut.size(),
        bounds.refused());
  }

  /** Returns what all of an executor's node are called, and adds it to the nodes. */
  private static String othersOf(final String executor, final Map<String, String> nodes) {
    final String node = nodes.get(executor);
    if (node == null) {
      return ReportCounters.OTHERS;
    }
    nodes.put(OTHERS_OF + node, node);
    return OTHERS_OF + node;
  }

  /** Each executor's machine: by Spark's name of the host where all executors there have one. */
  private Map<String, String> nodes() {
    final Map<String, Set<String>> names = new HashMap<>();
    machines.forEach(
        (executor, machine) ->
            names
                .computeIfAbsent(machine, any -> new HashSet<>())
                .add(hosts.getOrDefault(executor, "")));
    final Map<String, String> nodes = new HashMap<>(hosts);
    final Map<String, String> owners = new HashMap<>();
    machines.forEach(
        (executor, machine) -> {
          final String host = hosts.getOrDefault(executor, "");
          final boolean named =
              !host.isEmpty()
                  && names.getOrDefault(machine, Set.of()).size() == 1
                  && owners.computeIfAbsent(host, any -> machine).equals(machine);
          nodes.put(executor, named ? host : machine);
        });
    return nodes;
  }

  private static final class ShuffleSum {
    private final TreeSet<Integer> writers = new TreeSet<>();
    private final TreeSet<Integer> readers = new TreeSet<>();
    private final Map<String, Long> blocks = new TreeMap<>();
    private final Map<String, Long> bytes = new TreeMap<>();
    private final Map<String, Long> fallbacks = new TreeMap<>();
    private final Map<String, Cause> causes = new TreeMap<>();
    private long waitNanos;

    Shuffle copy(final int shuffleId) {
      return new Shuffle(
          shuffleId,
          List.copyOf(writers),
          List.copyOf(readers),
          new TreeMap<>(blocks),
          new TreeMap<>(bytes),
          waitNanos,
          new TreeMap<>(fallbacks),
          new TreeMap<>(causes));
    }
  }
}
