package io.zerohop.shuffle.keeper;

import io.zerohop.device.Device;
import io.zerohop.device.Message;
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
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.samenode.KeptExecutor;
import io.zerohop.shuffle.transport.samenode.LeftBlocks;
import io.zerohop.shuffle.transport.samenode.LeftFolder;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
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

  /** The same while nothing new comes: it lists a folder, most of what an idle keeper does. */
  private static final Duration QUIET_LOOK = Duration.ofMillis(200);

  private static final Duration REPORT = Duration.ofSeconds(2);

  /** As long as new executors may take in a look. */
  private static final Duration LOOK_LIMIT = Duration.ofSeconds(1);

  /** A socket at which nobody answers is tried again after this, and later after its multiples. */
  private static final Duration RETRY = Duration.ofSeconds(2);

  private static final int MAX_DOUBLINGS = 4;

  /** How often something may be written to files. */
  private static final Duration SPILL = Duration.ofMillis(250);

  /** With less of its limit left, a keeper writes to files what was not read for longest. */
  private static final int LEFT_PART = 8;

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
   * @param unread after how long outputs that nobody reads go to files
   * @param grace how long it stays with nothing to keep
   */
  public record Limits(long bytes, Duration life, Duration unread, Duration grace) {}

  private final SocketFolder folder;
  private final byte[] secret;
  private final Limits limits;
  private final Driver driver;
  private final String release;
  private final Clock clock;

  /** Of this process, which is the keeper's own. */
  private final long startedMillis =
      ProcessHandle.current().info().startInstant().map(Instant::toEpochMilli).orElse(1L);

  private final Device device = new HostDevice();
  private final SegmentServer mark;

  /** That this is the keeper of its folder. */
  private SocketFolder.@Nullable Claim claim;

  private final @Nullable LeftFolder files;
  private final FarReads farReads;
  private @Nullable ControlChannel far;

  /** What executors have left, by the names of their sockets. */
  private final Map<String, LeftBlocks> left = new ConcurrentHashMap<>();

  /** In the order in which they came. */
  private final List<KeptExecutor> executors = new ArrayList<>();

  private final Map<String, Long> retryAt = new HashMap<>();

  /** How often nobody has answered at a socket. */
  private final Map<String, Integer> retries = new HashMap<>();

  /** What the driver was told of each executor, by the name of its socket. */
  private final Map<String, Map<Integer, Set<Long>>> told = new HashMap<>();

  /** What the driver had no use for when it answered last, by the name of the socket. */
  private final Map<String, Set<Integer>> useless = new HashMap<>();

  private long adoptedOutputs;
  private long droppedOutputs;
  private long removedOutputs;

  /** Of executors that are closed. */
  private long refusedBefore;

  private long sharedSegmentsBefore;
  private long sharedBytesBefore;

  /** As of the last look. */
  private volatile KeeperStats stats;

  private long lookAt;
  private long busyAt;

  /** Bytes that may be held in addition, as of the last look. */
  private long room;

  /** Whether the machine's or container's memory was short at the last report. */
  private boolean isMemoryShort;

  private volatile boolean isSpillDue;
  private long neededAt;

  /** How often in a row the driver could not be reached. */
  private int silence;

  private final Housekeeping housekeeping;
  private Housekeeping.@Nullable Chore reporter;

  /** Answers out of files, which waits for the disk. */
  private volatile Housekeeping.@Nullable Chore answers;

  private Keeper(
      final SocketFolder folder,
      final byte[] secret,
      final Limits limits,
      final Driver driver,
      final @Nullable LeftFolder files,
      final String release,
      final Clock clock) {
    this.folder = folder;
    this.secret = secret.clone();
    this.limits = limits;
    this.driver = driver;
    this.files = files;
    this.release = release;
    this.clock = clock;
    this.housekeeping = new Housekeeping(clock);
    this.lookAt = clock.nanos();
    this.busyAt = clock.nanos();
    this.neededAt = clock.nanos();
    this.farReads = new FarReads(left::get, clock, this::answerFromFiles);
    this.stats = count();
    mark =
        new SegmentServer(
            folder, Location.KEEPER, secret, new Mark(() -> stats), SegmentServer.Limits.DEFAULT);
  }

  /**
   * Starts a keeper.
   *
   * @param folder of the application's sockets, closed with the keeper; also if it cannot start
   * @param channels makes the channel by which executors of other nodes ask, closed with the
   *     keeper. If it fails or is absent, only executors of this node read what is kept
   * @param files where outputs may go that take room in memory; absent if nowhere. Used only with
   *     such a channel, by which they are read
   * @param release of its jar, which executors show
   * @throws ZerohopException (FALLBACK) if there is one already
   */
  public static Keeper start(
      final SocketFolder folder,
      final byte[] secret,
      final Limits limits,
      final Driver driver,
      final @Nullable Function<ControlService, ControlChannel> channels,
      final @Nullable LeftFolder files,
      final String release,
      final Clock clock) {
    final Keeper keeper = new Keeper(folder, secret, limits, driver, files, release, clock);
    boolean done = false;
    try {
      keeper.claim = folder.claim(Location.KEEPER);
      if (keeper.claim == null) {
        throw new ZerohopException(
            ZerohopException.Category.FALLBACK, Message.of("another keeper runs here"));
      }
      keeper.mark.start();
      keeper.answers =
          keeper.housekeeping.everyLong(
              "file-answers", REPORT, () -> false, keeper.farReads::roundOfDisk);
      keeper.far = channels == null ? null : openedTo(channels, keeper.farReads);
      keeper.reporter =
          keeper.housekeeping.everyLong("reports", REPORT, () -> true, keeper::report);
      keeper.housekeeping.everyLong("files", SPILL, () -> keeper.isSpillDue, keeper::spill);
      done = true;
      return keeper;
    } finally {
      if (!done) {
        keeper.close();
      }
    }
  }

  private static @Nullable ControlChannel openedTo(
      final Function<ControlService, ControlChannel> channels, final FarReads reads) {
    try {
      return channels.apply(reads);
    } catch (final RuntimeException e) {
      ShuffleCode.KEEPER_NEAR_ONLY
          .says("the keeper does not answer executors of other nodes")
          .because(e)
          .remedy("see spark.zerohop.keeper.port")
          .warn(LOG, e);
      return null;
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
    final boolean isLook = clock.isOver(lookAt);
    if (isLook) {
      lookAt = clock.in(isBusy() ? LOOK : QUIET_LOOK);
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
    executors.forEach(this::openToOthers);
    forgetClosed();
    if (isLook) {
      settle();
      isSpillDue = toSpill() != null;
      stats = count();
    }
    farReads.round();
    return isNeeded();
  }

  /** Releases memory of what is in files now, for executors whose memory was too much. */
  private void settle() {
    boolean hasFreed = false;
    for (final KeptExecutor executor : executors) {
      hasFreed |= executor.settle();
    }
    if (hasFreed) {
      room = limits.bytes() - heldBytes();
      executors.forEach(KeptExecutor::retryRefused);
    }
  }

  /**
   * Returns an executor that has ended and has something for a file. If memory is short that is any
   * of them, otherwise one that nobody has read for long. Those whose files failed come last, and
   * what was not read for longest first.
   */
  private @Nullable KeptExecutor toSpill() {
    if (files == null || port() == 0 || !files.isUsable()) {
      return null;
    }
    final long least = isMemoryShort || isLimitReached() ? 0 : limits.unread().toNanos();
    return executors.stream()
        .filter(executor -> executor.isSpillable() && executor.unreadNanos() >= least)
        .min(
            Comparator.comparingInt(KeptExecutor::failedFiles)
                .thenComparingLong(executor -> -executor.unreadNanos()))
        .orElse(null);
  }

  private boolean isLimitReached() {
    final long leaving = executors.stream().mapToLong(KeptExecutor::leavingBytes).sum();
    final long left = limits.bytes() - heldBytes() + leaving;
    return left < limits.bytes() / LEFT_PART
        || leaving == 0 && executors.stream().anyMatch(KeptExecutor::isRefused);
  }

  private void answerFromFiles() {
    final Housekeeping.Chore chore = answers;
    if (chore != null) {
      chore.hurry();
    }
  }

  private void spill() {
    final KeptExecutor executor;
    synchronized (this) {
      executor = toSpill();
    }
    if (executor != null && files != null) {
      executor.spill(files); // Others are served meanwhile.
    }
    synchronized (this) {
      settle();
    }
  }

  private void openToOthers(final KeptExecutor executor) {
    final LeftBlocks blocks = executor.leftBlocks();
    if (blocks != null && left.putIfAbsent(executor.socket(), blocks) == null) {
      adoptedOutputs += outputsOf(executor);
    }
  }

  private static long outputsOf(final KeptExecutor executor) {
    return executor.leftOutputs().values().stream().mapToLong(Set::size).sum();
  }

  private KeeperStats count() {
    return new KeeperStats(
        startedMillis,
        limits.bytes(),
        heldBytes(),
        leftBytes(),
        executors.stream().mapToLong(Keeper::outputsOf).sum(),
        adoptedOutputs,
        droppedOutputs,
        removedOutputs,
        refusedBefore + executors.stream().mapToLong(KeptExecutor::refusedSegments).sum(),
        sharedSegmentsBefore + executors.stream().mapToLong(KeptExecutor::sharedSegments).sum(),
        sharedBytesBefore + executors.stream().mapToLong(KeptExecutor::sharedBytes).sum(),
        farReads.sentBlocks(),
        farReads.sentBytes(),
        executors.stream().mapToLong(KeptExecutor::fileBytes).sum(),
        files == null || port() == 0 ? 0 : files.limit(),
        executors.stream().mapToLong(KeptExecutor::fileOutputs).sum(),
        release);
  }

  private void forgetClosed() {
    for (final KeptExecutor executor : executors) {
      if (executor.isClosed()) {
        refusedBefore += executor.refusedSegments();
        sharedSegmentsBefore += executor.sharedSegments();
        sharedBytesBefore += executor.sharedBytes();
      }
    }
    if (executors.removeIf(KeptExecutor::isClosed)) {
      room = limits.bytes() - heldBytes();
      executors.forEach(KeptExecutor::retryRefused);
      final Set<String> sockets = new HashSet<>();
      executors.forEach(executor -> sockets.add(executor.socket()));
      told.keySet().retainAll(sockets);
      useless.keySet().retainAll(sockets);
      left.keySet().retainAll(sockets);
    }
  }

  private int port() {
    return far == null ? 0 : far.port();
  }

  private void look() {
    final Set<String> sockets = new TreeSet<>(folder.sockets());
    executors.stream().map(KeptExecutor::socket).forEach(sockets::remove);
    retryAt.keySet().retainAll(sockets);
    retries.keySet().retainAll(sockets);
    final long until = clock.in(LOOK_LIMIT);
    for (final String socket : sockets) {
      if (clock.isOver(until)) {
        break; // Sockets that nobody answers at must not hold up the others' outputs.
      }
      final Long later = retryAt.get(socket);
      if (!Location.isExecutor(socket) || later != null && !clock.isOver(later)) {
        continue;
      }
      try {
        executors.add(KeptExecutor.connect(folder, socket, secret, device, port(), clock));
        retries.remove(socket);
      } catch (final ZerohopException e) {
        LOG.debug("{} is not kept for now", socket, e);
        final int before = retries.merge(socket, 1, Integer::sum) - 1;
        retryAt.put(socket, clock.in(RETRY.multipliedBy(1L << Math.min(before, MAX_DOUBLINGS))));
      }
    }
  }

  /**
   * Tells the driver what each executor has left, and drops what is of no use to it by two answers
   * in a row: one may overtake the news of an output. What is too old is not told, so that the
   * driver has it computed again rather than look for it here.
   */
  private void report() {
    final List<KeptExecutor> ended;
    synchronized (this) {
      ended = executors.stream().filter(executor -> !executor.leftOutputs().isEmpty()).toList();
      ended.forEach(KeptExecutor::unmapUnread);
    }
    final KeptExecutor over = tooMuch(ended);
    for (final KeptExecutor executor : ended) {
      final Map<Integer, Set<Long>> outputs;
      final boolean isOld;
      final boolean isTold;
      synchronized (this) {
        isOld = executor.leftNanos() > limits.life().toNanos();
        outputs =
            isOld
                ? Map.of()
                : executor == over ? executor.outputsInFiles() : executor.leftOutputs();
        isTold = outputs.equals(told.get(executor.socket()));
      }
      try {
        heard(
            executor,
            outputs,
            driver.report(executor.executorId(), isTold ? null : outputs),
            isOld,
            executor == over);
      } catch (final Exception e) {
        // Scala throws what it does not declare.
        LOG.debug("the driver was not told what executor {} has left", executor.executorId(), e);
        unheard();
        return;
      }
    }
  }

  /**
   * Returns one whose memory has to go: the first where memory is short and nothing can go to
   * files. Of the executors of one GPU only the last keeps what it has left there: its successor
   * needs the rest.
   */
  private synchronized @Nullable KeptExecutor tooMuch(final List<KeptExecutor> ended) {
    final Map<String, KeptExecutor> ofGpus = new HashMap<>();
    for (final KeptExecutor executor : ended) {
      final String gpu = executor.leftGpu();
      final KeptExecutor before = gpu.isEmpty() ? null : ofGpus.put(gpu, executor);
      if (before != null) {
        return before;
      }
    }
    final long all = Math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes());
    isMemoryShort = !ended.isEmpty() && AvailableMemory.bytes() <= all / SPARE_PART;
    return !isMemoryShort || toSpill() != null
        ? null
        : ended.stream()
            .filter(executor -> executor.leftBytes() > executor.leavingBytes())
            .findFirst()
            .orElse(null);
  }

  private synchronized void unheard() {
    silence++;
  }

  private synchronized void heard(
      final KeptExecutor executor,
      final Map<Integer, Set<Long>> outputs,
      final Set<Integer> needed,
      final boolean isOld,
      final boolean isTooMuch) {
    silence = 0;
    if (isOld) {
      LOG.info("what executor {} has left is too old", executor.executorId());
      droppedOutputs += outputsOf(executor);
      executor.close();
      return;
    }
    if (isTooMuch) {
      LOG.info("what executor {} has left in memory is too much", executor.executorId());
      final long all = outputsOf(executor);
      executor.dropMemory();
      droppedOutputs += all - outputsOf(executor);
      removedOutputs += all - outputsOf(executor);
    }
    told.put(executor.socket(), outputs);
    final Set<Integer> missing = new HashSet<>(outputs.keySet());
    missing.removeAll(needed);
    final Set<Integer> before = useless.put(executor.socket(), missing);
    if (before != null) {
      before.retainAll(missing);
      final long whole = outputsOf(executor);
      before.forEach(executor::drop);
      droppedOutputs += whole - outputsOf(executor);
    }
  }

  /** Bytes of memory that are held of executors that have ended. */
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
    if (far != null) {
      far.close();
    }
    synchronized (this) {
      end();
    }
  }

  private void end() {
    executors.forEach(KeptExecutor::close);
    executors.clear();
    left.clear();
    mark.close();
    if (claim != null) {
      claim.close();
    }
    folder.sweep();
    folder.close();
    device.close();
  }

  /** Serves the socket that shows that a keeper runs, and only says by it what that holds. */
  private record Mark(Supplier<KeeperStats> stats) implements SegmentDirectory {
    @Override
    public byte[] connected(final PeerInfo peer) {
      return stats.get().encode();
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
