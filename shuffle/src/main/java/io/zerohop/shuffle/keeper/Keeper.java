package io.zerohop.shuffle.keeper;

import io.zerohop.device.Device;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.mapped.KeptExecutor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the memory of an application's executors on one node, and serves what they have left after
 * they have ended. It needs no GPU: a descriptor keeps GPU memory, too. One of an application and
 * node; owns its socket folder. Used by one thread.
 */
public final class Keeper implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Keeper.class);
  private static final Duration ROUND = Duration.ofMillis(10);
  private static final Duration LOOK = Duration.ofMillis(100);
  private static final Duration ASK = Duration.ofSeconds(2);
  private static final Duration RETRY = Duration.ofSeconds(1);

  /**
   * The limits of a keeper.
   *
   * @param bytes most that is held of executors that have ended; the eldest go first
   * @param alone longest time without an executor
   * @param grace how long it stays without an executor and a driver, or with nothing to keep
   */
  public record Limits(long bytes, Duration alone, Duration grace) {}

  private final SocketFolder folder;
  private final byte[] secret;
  private final Limits limits;
  private final BooleanSupplier driver;
  private final Clock clock;
  private final Device device = new HostDevice();
  private final SegmentServer mark;

  /** In the order in which they came. */
  private final List<KeptExecutor> executors = new ArrayList<>();

  private final Map<String, Long> retryAt = new HashMap<>();
  private long lookAt;
  private long askAt;
  private long aloneSince;
  private long driverSeen;

  private Keeper(
      final SocketFolder folder,
      final byte[] secret,
      final Limits limits,
      final BooleanSupplier driver,
      final Clock clock) {
    this.folder = folder;
    this.secret = secret.clone();
    this.limits = limits;
    this.driver = driver;
    this.clock = clock;
    this.lookAt = clock.nanos();
    this.askAt = clock.nanos();
    this.aloneSince = clock.nanos();
    this.driverSeen = clock.nanos();
    mark =
        new SegmentServer(
            folder, Location.KEEPER, secret, new Nothing(), SegmentServer.Limits.DEFAULT);
  }

  /**
   * Starts a keeper.
   *
   * @param folder of the application's sockets, closed with the keeper; also if it cannot start
   * @param driver whether the application's driver lives; may wait a second
   * @throws ZerohopException (FALLBACK) if there is one already
   */
  public static Keeper start(
      final SocketFolder folder,
      final byte[] secret,
      final Limits limits,
      final BooleanSupplier driver,
      final Clock clock) {
    final Keeper keeper = new Keeper(folder, secret, limits, driver, clock);
    boolean done = false;
    try {
      keeper.mark.start();
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
      clock.sleep(ROUND);
    }
  }

  /** Does what is due; returns whether it is to go on. Waits a limited time. */
  public boolean round() {
    if (clock.isOver(lookAt)) {
      lookAt = clock.in(LOOK);
      look();
    }
    for (final KeptExecutor executor : executors) {
      try {
        executor.round();
      } catch (final ZerohopException e) {
        ShuffleCode.LEFT_NOT_HELD
            .says("the keeper cannot hold what an executor has left")
            .at(executor.socket())
            .because(e)
            .warn(LOG, e);
        executor.close();
      }
    }
    if (clock.isOver(askAt)) {
      askAt = clock.in(ASK);
      drop();
    }
    keepToTheLimit();
    executors.removeIf(KeptExecutor::isClosed);
    return isNeeded();
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

  /** Any executor that lives knows what the driver has dropped, or asks the driver. */
  private void drop() {
    final Set<Integer> left = new TreeSet<>();
    executors.forEach(executor -> left.addAll(executor.leftShuffles()));
    for (final int shuffleId : left) {
      boolean dropped = false;
      for (final KeptExecutor executor : executors) {
        dropped |= executor.isLiving() && executor.isDropped(shuffleId);
      }
      if (dropped) {
        executors.forEach(executor -> executor.drop(shuffleId));
      }
    }
  }

  private void keepToTheLimit() {
    long bytes = leftBytes();
    for (final KeptExecutor executor : executors) {
      if (bytes <= limits.bytes()) {
        return;
      }
      final long left = executor.leftBytes();
      if (left > 0) {
        ShuffleCode.KEEPER_FULL
            .says("the keeper drops the outputs of an executor that ended")
            .at(executor.socket())
            .because(bytes + " bytes are held, and " + limits.bytes() + " are allowed")
            .remedy("raise spark.zerohop.keeper.size")
            .warn(LOG);
        executor.close();
        bytes -= left;
      }
    }
  }

  /** Bytes that are held of executors that have ended. */
  public long leftBytes() {
    return executors.stream().mapToLong(KeptExecutor::leftBytes).sum();
  }

  private boolean isNeeded() {
    if (executors.stream().anyMatch(KeptExecutor::isLiving)) {
      aloneSince = clock.nanos();
      driverSeen = clock.nanos();
      return true;
    }
    final long alone = clock.since(aloneSince);
    if (executors.isEmpty()) {
      return alone < limits.grace().toNanos();
    }
    if (clock.since(driverSeen) > limits.grace().toNanos() / 4 && driver.getAsBoolean()) {
      driverSeen = clock.nanos();
    }
    return alone < limits.alone().toNanos() && clock.since(driverSeen) < limits.grace().toNanos();
  }

  /** Closes everything. Idempotent. */
  @Override
  public void close() {
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
