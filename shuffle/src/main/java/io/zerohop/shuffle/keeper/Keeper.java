package io.zerohop.shuffle.keeper;

import io.zerohop.device.Device;
import io.zerohop.device.Message;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.exchange.SocketFolder;
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
import io.zerohop.shuffle.transport.samenode.LeftMemory;
import io.zerohop.shuffle.transport.samenode.LeftWriter;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the memory of an application's executors on one node, and serves what they have left after
 * they have ended. It needs no GPU: a descriptor keeps GPU memory, too, and a {@link Copier} copies
 * what has to leave it. One of an application and node; owns its socket folder. Thread safe.
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

  /** So long after something new, more is expected. */
  private static final Duration BUSY = Duration.ofSeconds(2);

  /** The application's driver, as its keeper asks it. */
  @FunctionalInterface
  public interface Driver {
    /** Of a keeper that it does not hear for so long it counts on nothing any more. */
    Duration PATIENCE = Duration.ofSeconds(16);

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

  /** Copies GPU memory that an executor has left to host memory, as by a process of its own. */
  @FunctionalInterface
  public interface Copier {
    /**
     * Copies; {@link SegmentCopier} says how. Ends early if it cannot, or need not go on.
     *
     * @param beside is to be done once the copying has been begun, and before its end
     * @param limit of the wait
     * @param cancelled whether nobody wants the copies any more
     * @throws IOException if it has not copied all
     */
    void copy(SegmentCopier.Order order, Runnable beside, Duration limit, BooleanSupplier cancelled)
        throws IOException;
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

  /** Absent if nothing goes to files. */
  private @Nullable LeftWriter writer;

  /** Absent if nothing is copied from GPU memory. */
  private @Nullable GpuCopies copies;

  private final FarReads farReads;
  private @Nullable ControlChannel far;

  /** What executors have left, by the names of their sockets. */
  private final Map<String, LeftBlocks> left = new ConcurrentHashMap<>();

  /** In the order in which they came. */
  private final List<KeptExecutor> executors = new ArrayList<>();

  private final Map<String, Long> retryAt = new HashMap<>();

  /** How often nobody has answered at a socket. */
  private final Map<String, Integer> retries = new HashMap<>();

  private final DriverReports reports;
  private long adoptedOutputs;

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

  private long neededAt;

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
      final LongSupplier memory,
      final Clock clock) {
    this.folder = folder;
    this.secret = secret.clone();
    this.limits = limits;
    this.files = files;
    this.release = release;
    this.clock = clock;
    this.housekeeping = new Housekeeping(clock);
    this.lookAt = clock.nanos();
    this.busyAt = clock.nanos();
    this.neededAt = clock.nanos();
    this.farReads = new FarReads(left::get, clock, this::answerFromFiles);
    this.reports =
        new DriverReports(
            this,
            executors,
            limits.life(),
            driver,
            memory,
            this::hasSpillable,
            left -> writer != null && left.leaveGpu(),
            clock);
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
   * @param copier for what lies in GPU memory and is wanted on the host; absent if there is none.
   *     Used only with such a channel
   * @param release of its jar, which executors show
   * @param memory bytes that the machine or container has available
   * @throws ZerohopException (FALLBACK) if there is one already
   */
  public static Keeper start(
      final SocketFolder folder,
      final byte[] secret,
      final Limits limits,
      final Driver driver,
      final @Nullable Function<ControlService, ControlChannel> channels,
      final @Nullable LeftFolder files,
      final @Nullable Copier copier,
      final String release,
      final LongSupplier memory,
      final Clock clock) {
    final Keeper keeper = new Keeper(folder, secret, limits, driver, files, release, memory, clock);
    try (Undo undo = new Undo(keeper)) {
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
      if (files != null && keeper.port() > 0) {
        final LeftWriter writer = new LeftWriter(files, limits.bytes(), limits.unread());
        keeper.writer = writer;
        keeper.housekeeping.everyLong("files", SPILL, writer::isDue, () -> keeper.spill(writer));
      }
      if (copier != null && keeper.port() > 0) {
        keeper.copies = new GpuCopies(copier, folder, keeper.device, memory, clock);
      }
      final Housekeeping.Chore reporter =
          keeper.housekeeping.everyLong("reports", REPORT, () -> true, keeper.reports::report);
      keeper.reporter = reporter;
      if (keeper.copies != null) {
        keeper.copies.begin(
            keeper.housekeeping,
            () -> {
              keeper.farReads.round(); // Those who wait hear of it before all of it is closed.
              reporter.hurry();
            });
      }
      return undo.keep(keeper);
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
      reports.limitUnheard();
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
    if (copies != null) {
      copies.choose(executors, room);
    }
    if (isLook) {
      settle();
      hasSpillable();
      stats = count();
    }
    farReads.askOwners(executors);
    farReads.round();
    return isNeeded();
  }

  /** Releases memory of what is in files now, for executors whose memory was too much. */
  private void settle() {
    if (leftMemory().filter(LeftMemory::settle).count() > 0) { // Of each.
      room = limits.bytes() - heldBytes();
      executors.forEach(KeptExecutor::retryRefused);
    }
  }

  /** Chooses what is written to a file next; returns whether there is something. */
  private boolean hasSpillable() {
    return writer != null && writer.choose(executors, reports.isMemoryShort());
  }

  private void answerFromFiles() {
    final Housekeeping.Chore chore = answers;
    if (chore != null) {
      chore.hurry();
    }
  }

  private void spill(final LeftWriter to) {
    synchronized (this) {
      hasSpillable();
    }
    to.write(); // Others are served meanwhile.
    synchronized (this) {
      settle();
    }
  }

  private void openToOthers(final KeptExecutor executor) {
    final LeftBlocks blocks = executor.left();
    if (blocks != null && left.putIfAbsent(executor.socket(), blocks) == null) {
      adoptedOutputs += outputsOf(executor);
    }
  }

  static long outputsOf(final KeptExecutor executor) {
    return executor.leftOutputs().values().stream().mapToLong(Set::size).sum();
  }

  private Stream<LeftMemory> leftMemory() {
    return executors.stream().map(KeptExecutor::left).filter(Objects::nonNull);
  }

  private KeeperStats count() {
    final long leftOutputs = executors.stream().mapToLong(Keeper::outputsOf).sum();
    return new KeeperStats(
        startedMillis,
        limits.bytes(),
        heldBytes(),
        leftBytes(),
        leftOutputs,
        adoptedOutputs,
        adoptedOutputs - leftOutputs,
        reports.removedOutputs(),
        refusedBefore + executors.stream().mapToLong(KeptExecutor::refusedSegments).sum(),
        sharedSegmentsBefore + executors.stream().mapToLong(KeptExecutor::sharedSegments).sum(),
        sharedBytesBefore + executors.stream().mapToLong(KeptExecutor::sharedBytes).sum(),
        farReads.sentBlocks(),
        farReads.sentBytes(),
        leftMemory().mapToLong(LeftMemory::fileBytes).sum(),
        files == null || writer == null ? 0 : files.limit(),
        leftMemory().mapToLong(LeftMemory::fileOutputs).sum(),
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
      reports.retain(sockets);
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
        final String name = Location.keeperName(port(), copies != null);
        executors.add(KeptExecutor.connect(folder, socket, secret, device, name, clock));
        retries.remove(socket);
      } catch (final ZerohopException e) {
        LOG.debug("{} is not kept for now", socket, e);
        final int before = retries.merge(socket, 1, Integer::sum) - 1;
        retryAt.put(socket, clock.in(RETRY.multipliedBy(1L << Math.min(before, MAX_DOUBLINGS))));
      }
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
    } else if (reports.silence() > 1) {
      return false; // The application has ended. A driver that only pauses is waited for.
    } else if (!executors.isEmpty()) {
      neededAt = clock.nanos();
    }
    return clock.since(neededAt) < limits.grace().toNanos();
  }

  /** Closes everything. Idempotent. */
  @Override
  public void close() {
    if (copies != null) {
      copies.cancel();
    }
    housekeeping.close();
    if (far != null) {
      far.close();
    }
    synchronized (this) {
      end();
    }
    if (files != null) {
      files.free();
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
