package io.zerohop.shuffle.keeper;

import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.samenode.KeptExecutor;
import io.zerohop.shuffle.transport.samenode.LeftMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the driver what executors have left, and drops what it has no use for, what is too old and
 * what is too much. A driver that does not answer holds up nothing of that but the first. All of it
 * is used under the lock of its keeper; {@link #report} takes it, but not while it asks the driver.
 */
final class DriverReports {
  private static final Logger LOG = LoggerFactory.getLogger(DriverReports.class);

  /** Below this part of the machine's or container's memory, what was left first goes. */
  private static final int SPARE_PART = 20;

  /** As long as a report may wait for answers that do not come, but for the last of them. */
  private static final Duration ROUND = Duration.ofSeconds(2);

  private final Object lock;
  private final List<KeptExecutor> executors;
  private final Duration life;
  private final Keeper.Driver driver;
  private final LongSupplier memory;
  private final BooleanSupplier spillable;
  private final Predicate<LeftMemory> leavesGpu;
  private final Clock clock;

  /** With less available, the machine's or container's memory is short. */
  private final long leastMemory = leastMemory();

  /** What the driver was told of each executor, by the name of its socket. */
  private final Map<String, Map<Integer, Set<Long>>> told = new HashMap<>();

  /** What the driver had no use for when it answered last, by the name of the socket. */
  private final Map<String, Set<Integer>> useless = new HashMap<>();

  private long removedOutputs;
  private boolean isMemoryShort;
  private int silence;

  /** When the driver answered last, by the name of the socket. */
  private final Map<String, Long> heardAt = new HashMap<>();

  /** When limits are looked at again that hold without an answer. */
  private long limitAt;

  /** The socket of the executor behind which the next report begins; empty if it is any. */
  private String last = "";

  /**
   * @param lock of the keeper
   * @param executors its own, which it changes under the lock
   * @param life how long outputs stay after their executor's end
   * @param memory bytes that the machine or container has available
   * @param spillable whether something can go to files
   * @param leavesGpu has what an executor has left in GPU memory go to files; whether it may
   */
  DriverReports(
      final Object lock,
      final List<KeptExecutor> executors,
      final Duration life,
      final Keeper.Driver driver,
      final LongSupplier memory,
      final BooleanSupplier spillable,
      final Predicate<LeftMemory> leavesGpu,
      final Clock clock) {
    this.lock = lock;
    this.executors = executors;
    this.life = life;
    this.driver = driver;
    this.memory = memory;
    this.spillable = spillable;
    this.leavesGpu = leavesGpu;
    this.clock = clock;
    this.limitAt = clock.nanos();
  }

  /** Bytes of the machine's or container's memory that are left to others. */
  static long leastMemory() {
    return Math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes()) / SPARE_PART;
  }

  /** Map outputs that were removed because memory was short. */
  long removedOutputs() {
    return removedOutputs;
  }

  /** Whether the machine's or container's memory was short at the last report. */
  boolean isMemoryShort() {
    return isMemoryShort;
  }

  /** How often in a row the driver could not be reached. */
  int silence() {
    return silence;
  }

  /** Forgets all executors but those of some sockets. */
  void retain(final Set<String> sockets) {
    told.keySet().retainAll(sockets);
    useless.keySet().retainAll(sockets);
    heardAt.keySet().retainAll(sockets);
  }

  /**
   * Tells the driver what each executor has left, and drops what is of no use to it by two answers
   * in a row. Those soon after the executor's end do not count: they may overtake the news of an
   * output. What is too old is not told, so that the driver has it computed again rather than look
   * for it here.
   *
   * <p>One of which the driver does not hear leaves the others their turn, at once or, if that
   * takes long, in the next report.
   */
  void report() {
    final List<KeptExecutor> ended;
    final KeptExecutor over;
    synchronized (lock) {
      ended = ended();
      ended.stream()
          .map(KeptExecutor::left)
          .filter(Objects::nonNull)
          .forEach(LeftMemory::unmapUnread);
      over = tooMuch(ended);
      silence = ended.isEmpty() ? 0 : silence;
    }
    boolean isHeard = ended.isEmpty();
    long waited = 0;
    for (final KeptExecutor executor : inTurn(ended)) {
      final long begin = clock.nanos();
      if (tell(executor, executor == over)) {
        isHeard = true;
        continue;
      }
      waited += clock.since(begin);
      if (waited > ROUND.toNanos()) {
        last = executor.socket();
        break;
      }
    }
    if (!isHeard) {
      synchronized (lock) {
        silence++;
      }
    }
  }

  private List<KeptExecutor> ended() {
    return executors.stream()
        .filter(executor -> executor.left() != null)
        .sorted(KeptExecutor.BY_END)
        .toList();
  }

  /** Those come first that had no turn in the last report. */
  private List<KeptExecutor> inTurn(final List<KeptExecutor> ended) {
    final List<KeptExecutor> inTurn = new ArrayList<>(ended);
    final int before = ended.stream().map(KeptExecutor::socket).toList().indexOf(last);
    Collections.rotate(inTurn, -before - 1);
    last = "";
    return inTurn;
  }

  /** Returns whether the driver has answered. */
  private boolean tell(final KeptExecutor executor, final boolean isTooMuch) {
    final Map<Integer, Set<Long>> outputs;
    final boolean isOld;
    final boolean isTold;
    synchronized (lock) {
      isOld = isOld(executor);
      outputs = isOld ? Map.of() : isTooMuch ? executor.outputsInFiles() : executor.leftOutputs();
      isTold = outputs.equals(told.get(executor.socket()));
    }
    try {
      final Set<Integer> needed = driver.report(executor.executorId(), isTold ? null : outputs);
      synchronized (lock) {
        heard(executor, outputs, needed, isOld, isTooMuch);
      }
      return true;
    } catch (final Exception e) {
      // Scala throws what it does not declare.
      LOG.debug("the driver was not told what executor {} has left", executor.executorId(), e);
      return false;
    }
  }

  private boolean isOld(final KeptExecutor executor) {
    return executor.leftNanos() > life.toNanos();
  }

  /** Whether the driver has not answered for so long that it counts on nothing of an executor. */
  private boolean isUnheard(final KeptExecutor executor) {
    final Long at = heardAt.get(executor.socket());
    final long nanos = at == null ? executor.leftNanos() : clock.since(at);
    return nanos > Keeper.Driver.PATIENCE.toNanos();
  }

  /**
   * Drops what is too old and too much also where the driver does not answer. Waits for nothing but
   * threads that serve what is dropped.
   */
  void limitUnheard() {
    if (!clock.isOver(limitAt)) {
      return;
    }
    limitAt = clock.in(ROUND);
    final List<KeptExecutor> unheard = ended().stream().filter(this::isUnheard).toList();
    if (unheard.isEmpty()) {
      return;
    }
    unheard.stream().filter(this::isOld).forEach(old -> release(old, DriverReports::closeOld));
    final KeptExecutor over = tooMuch(ended());
    if (over != null && unheard.contains(over)) {
      release(over, this::dropTooMuch);
    }
  }

  /** The keeper's own thread comes here, which has the outputs of all others. */
  private static void release(final KeptExecutor executor, final Consumer<KeptExecutor> how) {
    try {
      how.accept(executor);
    } catch (final RuntimeException e) {
      LOG.info("not all of what executor {} has left was released", executor.executorId(), e);
    }
  }

  /**
   * Returns one whose memory has to go: the first where memory is short and nothing can go to
   * files. Of the executors of one GPU only the last keeps what it has left there, since its
   * successor needs the rest; what the others have left goes to files where it can.
   */
  private @Nullable KeptExecutor tooMuch(final List<KeptExecutor> ended) {
    final Map<String, KeptExecutor> ofGpus = new HashMap<>();
    for (final KeptExecutor executor : ended) {
      final String gpu = executor.leftGpu();
      final KeptExecutor before = gpu.isEmpty() ? null : ofGpus.put(gpu, executor);
      final LeftMemory left = before == null ? null : before.left();
      if (left != null && !leavesGpu.test(left)) {
        return before;
      }
    }
    isMemoryShort = !ended.isEmpty() && memory.getAsLong() <= leastMemory;
    return !isMemoryShort || spillable.getAsBoolean() || closeCopies(ended)
        ? null
        : ended.stream()
            .filter(executor -> executor.leftBytes() > executor.leavingBytes())
            .findFirst()
            .orElse(null);
  }

  /** Returns whether there were copies of GPU memory, which is there as before. */
  private static boolean closeCopies(final List<KeptExecutor> ended) {
    boolean wereAny = false;
    for (final KeptExecutor executor : ended) {
      final LeftMemory left = executor.left();
      wereAny |= left != null && left.closeCopies();
    }
    return wereAny;
  }

  private void heard(
      final KeptExecutor executor,
      final Map<Integer, Set<Long>> outputs,
      final Set<Integer> needed,
      final boolean isOld,
      final boolean isTooMuch) {
    silence = 0;
    if (executor.isClosed()) {
      return; // Meanwhile.
    }
    heardAt.put(executor.socket(), clock.nanos());
    if (isOld) {
      closeOld(executor);
      return;
    }
    if (isTooMuch) {
      dropTooMuch(executor);
    }
    told.put(executor.socket(), outputs);
    final Set<Integer> missing = new HashSet<>(outputs.keySet());
    missing.removeAll(needed);
    if (executor.leftNanos() < Keeper.Driver.PATIENCE.toNanos()) {
      missing.clear(); // Statuses of its last tasks may come to the driver after this report.
    }
    final Set<Integer> before = useless.put(executor.socket(), missing);
    if (before != null) {
      before.retainAll(missing);
      before.forEach(executor::drop);
    }
    if (outputs.isEmpty()) {
      executor.close(); // As its files could not be read, which the driver has heard.
    }
  }

  private static void closeOld(final KeptExecutor executor) {
    LOG.info("what executor {} has left is too old", executor.executorId());
    executor.close();
  }

  private void dropTooMuch(final KeptExecutor executor) {
    LOG.info("what executor {} has left in memory is too much", executor.executorId());
    final long all = Keeper.outputsOf(executor);
    executor.dropMemory();
    removedOutputs += all - Keeper.outputsOf(executor);
  }
}
