package io.zerohop.shuffle.keeper;

import io.zerohop.device.Device;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.mapped.KeptExecutor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the memory of an application's executors on one node, and serves what they have left after
 * they have ended. It needs no GPU: a descriptor keeps GPU memory, too. One of an application and
 * node; owns its socket folder. Thread safe.
 */
public final class Keeper implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Keeper.class);
  private static final Duration ROUND = Duration.ofMillis(10);

  /** The same while nothing new comes. */
  private static final Duration QUIET_ROUND = Duration.ofMillis(40);

  private static final Duration LOOK = Duration.ofMillis(100);
  private static final Duration REPORT = Duration.ofSeconds(2);
  private static final Duration RETRY = Duration.ofSeconds(2);

  /** So long after something new, more is expected. */
  private static final Duration BUSY = Duration.ofSeconds(2);

  /** Below this part of the machine's or container's memory, what was left first goes. */
  private static final int SPARE_PART = 20;

  /** The application's driver, as its keeper asks it. */
  @FunctionalInterface
  public interface Driver {
    /**
     * Tells it what an executor that ended has left, and hears what of it is of use. Waits a
     * limited time. Called by one thread.
     *
     * @param outputs ids of map outputs by shuffle; absent if it has heard of them
     * @return shuffles of which the driver counts on outputs of this executor
     * @throws Exception if the driver does not answer
     */
    Set<Integer> report(String executorId, @Nullable Map<Integer, Set<Long>> outputs)
        throws Exception;
  }

  /**
   * The limits of a keeper.
   *
   * @param bytes most that is held, of executors that live and of those that have ended
   * @param life how long outputs stay after their executor's end
   * @param grace how long it stays with nothing to keep
   */
  public record Limits(long bytes, Duration life, Duration grace) {}

  private final SocketFolder folder;
  private final byte[] secret;
  private final Limits limits;
  private final Driver driver;
  private final Clock clock;
  private final Device device = new HostDevice();
  private final SegmentServer mark;

  /** In the order in which they came. */
  private final List<KeptExecutor> executors = new ArrayList<>();

  private final Map<String, Long> retryAt = new HashMap<>();

  /** What the driver was told of each executor, by the name of its socket. */
  private final Map<String, Map<Integer, Set<Long>>> told = new HashMap<>();

  /** What the driver had no use for when it answered last, by the name of the socket. */
  private final Map<String, Set<Integer>> useless = new HashMap<>();

  private long lookAt;
  private long busyAt;

  /** Bytes that may be held in addition, as of the last look. */
  private long room;

  private long neededAt;

  /** How often in a row the driver could not be reached. */
  private int silence;

  private final Housekeeping housekeeping;
  private Housekeeping.@Nullable Chore reporter;

  private Keeper(
      final SocketFolder folder,
      final byte[] secret,
      final Limits limits,
      final Driver driver,
      final Clock clock) {
    this.folder = folder;
    this.secret = secret.clone();
    this.limits = limits;
    this.driver = driver;
    this.clock = clock;
    this.housekeeping = new Housekeeping(clock);
    this.lookAt = clock.nanos();
    this.busyAt = clock.nanos();
    this.neededAt = clock.nanos();
    mark =
        new SegmentServer(
            folder, Location.KEEPER, secret, new Nothing(), SegmentServer.Limits.DEFAULT);
  }

  /**
   * Starts a keeper.
   *
   * @param folder of the application's sockets, closed with the keeper; also if it cannot start
   * @throws ZerohopException (FALLBACK) if there is one already
   */
  public static Keeper start(
      final SocketFolder folder,
      final byte[] secret,
      final Limits limits,
      final Driver driver,
      final Clock clock) {
    final Keeper keeper = new Keeper(folder, secret, limits, driver, clock);
    boolean done = false;
    try {
      keeper.mark.start();
      keeper.reporter =
          keeper.housekeeping.everyLong("reports", REPORT, () -> true, keeper::report);
      done = true;
      return keeper;
    } finally {
      if (!done) {
        keeper.close();
      }
    }
  }

  /**
   * Keeps until nobody needs it any more, or the thread is interrupted.
   *
   * @throws InterruptedException if it was interrupted
   */
  public void run() throws InterruptedException {
    while (round()) {
      clock.sleep(isBusy() ? ROUND : QUIET_ROUND);
    }
  }

  private synchronized boolean isBusy() {
    return clock.since(busyAt) < BUSY.toNanos();
  }

  /** Does what is due; returns whether it is to go on. Waits a limited time. */
  public synchronized boolean round() {
    if (clock.isOver(lookAt)) {
      lookAt = clock.in(LOOK);
      look();
      room = limits.bytes() - heldBytes();
    }
    for (final KeptExecutor executor : executors) {
      final boolean lived = executor.isLiving();
      try {
        final long added = executor.round(room);
        room -= added;
        busyAt = added > 0 ? clock.nanos() : busyAt;
      } catch (final RuntimeException e) {
        // Also of damage that nobody has thought of: the others' outputs go on.
        ShuffleCode.LEFT_NOT_HELD
            .says("the keeper cannot hold what an executor has left")
            .at(executor.socket())
            .because(e)
            .warn(LOG, e);
        executor.close();
      }
      if (lived && !executor.isLiving() && reporter != null) {
        reporter.hurry();
      }
    }
    forgetClosed();
    return isNeeded();
  }

  private void forgetClosed() {
    if (executors.removeIf(KeptExecutor::isClosed)) {
      room = limits.bytes() - heldBytes();
      executors.forEach(KeptExecutor::retryRefused);
      final Set<String> sockets = new HashSet<>();
      executors.forEach(executor -> sockets.add(executor.socket()));
      told.keySet().retainAll(sockets);
      useless.keySet().retainAll(sockets);
    }
  }

  private void look() {
    final Set<String> sockets = new TreeSet<>(folder.sockets());
    executors.stream().map(KeptExecutor::socket).forEach(sockets::remove);
    retryAt.keySet().retainAll(sockets);
    for (final String socket : sockets) {
      final Long later = retryAt.get(socket);
      if (!Location.isExecutor(socket) || later != null && !clock.isOver(later)) {
        continue;
      }
      try {
        executors.add(KeptExecutor.connect(folder, socket, secret, device, clock));
      } catch (final ZerohopException e) {
        LOG.debug("{} is not kept for now", socket, e);
        retryAt.put(socket, clock.in(RETRY));
      }
    }
  }

  /**
   * Tells the driver what each executor has left, and drops what is of no use to it by two answers
   * in a row: one may overtake the news of an output. What is too old is not told, so that the
   * driver has it computed again rather than look for it here.
   */
  private void report() {
    final List<KeptExecutor> left;
    synchronized (this) {
      left = executors.stream().filter(executor -> executor.leftBytes() > 0).toList();
    }
    final KeptExecutor over = tooMuch(left);
    for (final KeptExecutor executor : left) {
      final Map<Integer, Set<Long>> outputs;
      final boolean isOld;
      final boolean isTold;
      synchronized (this) {
        isOld = executor == over || executor.leftNanos() > limits.life().toNanos();
        outputs = isOld ? Map.of() : executor.leftOutputs();
        isTold = outputs.equals(told.get(executor.socket()));
      }
      try {
        heard(
            executor,
            outputs,
            driver.report(executor.executorId(), isTold ? null : outputs),
            isOld);
      } catch (final Exception e) {
        // Scala throws what it does not declare.
        LOG.debug("the driver was not told what executor {} has left", executor.executorId(), e);
        unheard();
        return;
      }
    }
  }

  /**
   * Returns one that has to go, the first where memory is short. Of the executors of one GPU only
   * the last keeps what it has left there: its successor needs the rest.
   */
  private synchronized @Nullable KeptExecutor tooMuch(final List<KeptExecutor> left) {
    final Map<String, KeptExecutor> ofGpus = new HashMap<>();
    for (final KeptExecutor executor : left) {
      final String gpu = executor.leftGpu();
      final KeptExecutor before = gpu.isEmpty() ? null : ofGpus.put(gpu, executor);
      if (before != null) {
        return before;
      }
    }
    final long all = Math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes());
    return left.isEmpty() || AvailableMemory.bytes() > all / SPARE_PART ? null : left.get(0);
  }

  private synchronized void unheard() {
    silence++;
  }

  private synchronized void heard(
      final KeptExecutor executor,
      final Map<Integer, Set<Long>> outputs,
      final Set<Integer> needed,
      final boolean isOld) {
    silence = 0;
    if (isOld) {
      LOG.info("what executor {} has left is too old or too much", executor.executorId());
      executor.close();
      return;
    }
    told.put(executor.socket(), outputs);
    final Set<Integer> missing = new HashSet<>(outputs.keySet());
    missing.removeAll(needed);
    final Set<Integer> before = useless.put(executor.socket(), missing);
    if (before != null) {
      before.retainAll(missing);
      before.forEach(executor::drop);
    }
  }

  /** Bytes that are held of executors that have ended. */
  public synchronized long leftBytes() {
    return executors.stream().mapToLong(KeptExecutor::leftBytes).sum();
  }

  private long heldBytes() {
    return executors.stream().mapToLong(KeptExecutor::heldBytes).sum();
  }

  private boolean isNeeded() {
    if (executors.stream().anyMatch(KeptExecutor::isLiving)) {
      neededAt = clock.nanos();
    } else if (silence > 1) {
      return false; // The application has ended. A driver that only pauses is waited for.
    } else if (!executors.isEmpty()) {
      neededAt = clock.nanos();
    }
    return clock.since(neededAt) < limits.grace().toNanos();
  }

  /** Closes everything. Idempotent. */
  @Override
  public void close() {
    housekeeping.close();
    synchronized (this) {
      end();
    }
  }

  private void end() {
    executors.forEach(KeptExecutor::close);
    executors.clear();
    mark.close();
    folder.sweep();
    folder.close();
    device.close();
  }

  /** Serves the socket that shows that a keeper runs, and nothing by it. */
  private static final class Nothing implements SegmentDirectory {
    @Override
    public byte[] connected(final PeerInfo peer) {
      return new byte[0];
    }

    @Override
    public @Nullable SegmentHandle export(final long segmentId) {
      return null;
    }

    @Override
    public @Nullable Loan lend(final PeerInfo peer, final long bytes) {
      return null;
    }

    @Override
    public void returned(final PeerInfo peer, final long segmentId) {
      // Nothing is lent.
    }

    @Override
    public void failed(final Throwable cause) {
      LOG.info("others no longer see that this keeper runs", cause);
    }

    @Override
    public void disconnected(final PeerInfo peer) {
      // Nothing was given.
    }
  }
}
