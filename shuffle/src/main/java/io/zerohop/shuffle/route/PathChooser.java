package io.zerohop.shuffle.route;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.BlockMemory;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.Transport.OwnerGoneException;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.RemoteNode;
import io.zerohop.shuffle.transport.remote.SendingNode;
import io.zerohop.shuffle.transport.samenode.PeerDirectory;
import io.zerohop.shuffle.transport.ucx.UcxNode;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses the path to an owner's blocks: in place if possible and allowed, else another one, staged
 * as the last. Thread safe.
 */
public final class PathChooser {
  private static final Logger LOG = LoggerFactory.getLogger(PathChooser.class);
  private static final Message OTHER_NODE = Message.of("the owner is on another node");
  private static final Message NO_PEERS = Message.of("spark.zerohop.paths does not allow 'peer'");
  private static final Message OTHER_FOLDER =
      Message.of("the owner has another spark.zerohop.socket.dir");

  /**
   * The path chosen for one owner's blocks.
   *
   * @param path the way
   * @param memory where to read in place; absent if the blocks are moved
   * @param reason why blocks are staged; absent for any other path. It has no place of its own: the
   *     owner is known
   */
  public record Route(BlockPath path, @Nullable BlockMemory memory, @Nullable Message reason) {
    private static final Route BY_UCX = new Route(BlockPath.UCX, null, null);
    private static final Route SENT = new Route(BlockPath.SENT, null, null);

    private static Route staged(final Message reason) {
      return new Route(BlockPath.STAGED, null, reason);
    }
  }

  /** Absent in a process that shares no memory; then it has none of the parts below either. */
  private final @Nullable Location self;

  private final Set<BlockPath> allowed;
  private final @Nullable BlockMemory local;
  private final @Nullable PeerDirectory peers;
  private final @Nullable UcxNode ucx;
  private final @Nullable SendingNode sending;
  private final OwnerLiveness liveness;
  private final Set<String> reported = ConcurrentHashMap.newKeySet();

  /**
   * @param ucx the path between nodes by UCX, if there is one here
   * @param sending the path between nodes by Spark's connections, if there is one here
   * @param clock by which it is remembered who lives
   */
  public PathChooser(
      final @Nullable Location self,
      final Set<BlockPath> allowed,
      final @Nullable BlockMemory local,
      final @Nullable PeerDirectory peers,
      final @Nullable UcxNode ucx,
      final @Nullable SendingNode sending,
      final Clock clock) {
    this.self = self;
    this.allowed = allowed;
    this.local = local;
    this.peers = peers;
    this.ucx = ucx;
    this.sending = sending;
    this.liveness = new OwnerLiveness(clock);
  }

  /** For a process that has no memory to share. */
  public static PathChooser stagedOnly(final Set<BlockPath> allowed, final Clock clock) {
    return new PathChooser(null, allowed, null, null, null, null, clock);
  }

  /**
   * The route to an owner. May connect to it, which takes a limited time.
   *
   * @param staging what stages blocks, which also shows whether an owner lives that cannot be asked
   * @param side who reads
   * @throws OwnerGoneException if the owner is dead: on another node, nobody answers where somebody
   *     did before; on any, it cannot be asked and nobody serves staged blocks there. Also if its
   *     socket is gone or not served and staging is not allowed
   * @throws ZerohopException (RETRY) if no way is allowed that is possible
   */
  public Route choose(
      final BlockSource source, final FallbackTransport staging, final ReadSide side) {
    final Choice choice = new Choice(source, staging);
    return choice.orAllowed(choice.best(side));
  }

  /**
   * The route of blocks that cannot be got from their owner's memory: sent, or else staged. May
   * connect to it, which takes a limited time.
   *
   * @param why they cannot
   * @throws OwnerGoneException as {@link #choose}
   * @throws ZerohopException (RETRY) if neither is allowed
   */
  public Route withoutGets(
      final BlockSource source, final FallbackTransport staging, final Message why) {
    final Choice choice = new Choice(source, staging);
    return choice.orAllowed(
        allowed.contains(BlockPath.SENT)
            ? choice.orLeft(() -> choice.bySending(why))
            : Route.staged(ShuffleCode.ONLY_SENT.says("the blocks can only be sent").because(why)));
  }

  /**
   * Returns whether {@link #choose} has to connect to an owner on another node before it knows the
   * route. Does not wait.
   */
  public boolean connectsFirst(final BlockSource source) {
    final Location owner = source.location();
    if (self == null || owner == null || isLocal(owner) || whyNotMapped(owner) == null) {
      return false;
    }
    final boolean isConnected =
        mayUseUcx(owner) && own(ucx).isConnected(owner)
            || maySend(owner) && own(sending).isConnected(owner);
    return !isConnected && (mayUseUcx(owner) || maySend(owner));
  }

  /** Something of this node that is known to be there. */
  private static <T> T own(final @Nullable T part) {
    return Objects.requireNonNull(part, "this process shares no memory");
  }

  private boolean isLocal(final Location owner) {
    return owner.incarnation() == own(self).incarnation();
  }

  /** Returns why the memory of another executor cannot be mapped; absent if it can. */
  private @Nullable Message whyNotMapped(final Location owner) {
    if (!owner.bootId().equals(own(self).bootId())) {
      return OTHER_NODE;
    }
    if (!allowed.contains(BlockPath.PEER)) {
      return NO_PEERS;
    }
    return owner.folderId().equals(own(self).folderId()) ? null : OTHER_FOLDER;
  }

  private boolean mayUseUcx(final Location owner) {
    return ucx != null && owner.port() > 0 && allowed.contains(BlockPath.UCX);
  }

  private boolean maySend(final Location owner) {
    return sending != null && owner.sends() && allowed.contains(BlockPath.SENT);
  }

  /**
   * The staged route, where nothing better is left.
   *
   * @throws ZerohopException (RETRY) if it is not allowed
   */
  public Route staged(final String executorId, final Message reason) {
    if (!allowed.contains(BlockPath.STAGED)) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          ShuffleCode.STAGED_NOT_ALLOWED
              .says("blocks can only be staged, and spark.zerohop.paths does not allow that")
              .at("executor " + executorId)
              .remedy("add 'staged' to spark.zerohop.paths")
              .because(reason));
    }
    return Route.staged(reason);
  }

  /** The choice for one owner. */
  private final class Choice {
    private final BlockSource source;
    private final FallbackTransport staging;

    Choice(final BlockSource source, final FallbackTransport staging) {
      this.source = source;
      this.staging = staging;
    }

    private Route orAllowed(final Route route) {
      final Message whyStaged = route.reason();
      return whyStaged == null ? route : PathChooser.this.staged(source.executorId(), whyStaged);
    }

    Route best(final ReadSide side) {
      final Location owner = source.location();
      if (self == null) {
        return Route.staged(
            ShuffleCode.SHARES_NO_MEMORY
                .says("this executor shares no memory")
                .remedy("see its log for the reason"));
      }
      if (owner == null) {
        return Route.staged(ShuffleCode.NO_LOCATION.says("the map status names no memory"));
      }
      if (isLocal(owner)) {
        return allowed.contains(BlockPath.LOCAL)
            ? new Route(BlockPath.LOCAL, own(local), null)
            : Route.staged(
                ShuffleCode.LOCAL_NOT_ALLOWED.says("spark.zerohop.paths does not allow 'local'"));
      }
      final Message why = whyNotMapped(owner);
      if (why == null) {
        return peer(owner);
      }
      if (why != OTHER_FOLDER || mayUseUcx(owner) || maySend(owner)) {
        return elsewhere(side, why);
      }
      return staged(
          ShuffleCode.OTHER_SOCKET_FOLDER
              .says("an executor of this node has another socket folder; its blocks are staged")
              .remedy("let all executors of a node see the same spark.zerohop.socket.dir"),
          null);
    }

    /**
     * The owner's memory cannot be mapped: got by UCX where that is possible, else sent or staged.
     */
    private Route elsewhere(final ReadSide side, final Message why) {
      return orLeft(
          () -> {
            final Route byUcx = byUcx(side, why);
            return byUcx.path() == BlockPath.UCX || !allowed.contains(BlockPath.SENT)
                ? byUcx
                : bySending(why);
          });
    }

    /** Where the owner is dead, what its node's keeper has is staged from there. */
    private Route orLeft(final Supplier<Route> owners) {
      try {
        return owners.get();
      } catch (final OwnerGoneException e) {
        if (!source.kept()
            || source.knownLocation().keeperPort() == 0
            || !allowed.contains(BlockPath.STAGED)) {
          throw e;
        }
        return Route.staged(
            ShuffleCode.LEFT_ELSEWHERE
                .says("the executor has ended, and the keeper of its node sends its blocks")
                .because(e));
      }
    }

    Route bySending(final Message why) {
      if (sending == null) {
        return Route.staged(
            ShuffleCode.SENDING_NOT_HERE
                .says("this executor neither sends blocks nor receives sent ones")
                .because(why)
                .remedy("see this executor's log for the reason"));
      }
      if (!source.knownLocation().sends()) {
        return Route.staged(
            ShuffleCode.SENDING_NOT_THERE
                .says("the owner does not send its blocks")
                .because(why)
                .remedy("see that executor's log for the reason"));
      }
      try {
        sending.connect(source);
        return Route.SENT;
      } catch (final ExchangeException | CarrierException e) {
        if (e instanceof ExchangeException unanswered) {
          throwIfDead(unanswered, sending, ShuffleCode.SENDER_DEAD);
          if (unanswered.reason() == Reason.BUSY) {
            return Route.staged(ShuffleCode.SENDER_BUSY.says("the owner is busy").because(e));
          }
        }
        return staged(
            ShuffleCode.SENDER_NOT_REACHED
                .says(
                    "the owner did not send its blocks to this reader; one of them may be shutting"
                        + " down or paused")
                .because(e),
            e);
      }
    }

    /**
     * Throws if an owner is dead: that is in whose place another one answers, who refuses where it
     * answered before, or who answers at none of its ports. Whoever only says nothing may have
     * paused, or something may be in between: the kernel still accepts connections for a process
     * that is stopped, and its blocks are staged, with Spark's patience.
     */
    private void throwIfDead(
        final ExchangeException e, final RemoteNode<?> way, final ShuffleCode code) {
      final boolean replaced = e.reason() == Reason.REPLACED;
      if (replaced) {
        staging.ended(source);
      }
      final boolean refused = e.reason() == Reason.REFUSED;
      // One that is just dying may still accept a connection, and then reset it.
      final boolean doubtful =
          refused || e.reason() == Reason.TIMEOUT || e.reason() == Reason.CLOSED;
      if (replaced
          || (refused && way.hasMet(source.knownLocation()))
          || (doubtful && !liveness.answers(source, staging))) {
        throw new OwnerGoneException(
            code.says("an executor is dead: it does not answer")
                .at("executor " + source.executorId())
                .because(e),
            e);
      }
    }

    private Route byUcx(final ReadSide side, final Message why) {
      if (!allowed.contains(BlockPath.UCX)) {
        return Route.staged(
            ShuffleCode.UCX_NOT_ALLOWED
                .says("spark.zerohop.paths does not allow 'ucx'")
                .because(why));
      }
      if (ucx == null) {
        return Route.staged(
            ShuffleCode.UCX_NOT_HERE
                .says("this executor does not use UCX")
                .because(why)
                .remedy("see this executor's log for the reason"));
      }
      if (source.knownLocation().port() == 0) {
        return Route.staged(
            ShuffleCode.UCX_NOT_THERE
                .says("the owner does not use UCX")
                .because(why)
                .remedy("see that executor's log for the reason"));
      }
      try {
        ucx.connect(source);
        return ucx.gets(source.knownLocation(), side)
            ? Route.BY_UCX
            : Route.staged(
                ShuffleCode.NOTHING_GOT
                    .says("the owner is not read by UCX")
                    .because(why)
                    .remedy("see the line of first contact in this executor's log"));
      } catch (final ExchangeException e) {
        return unanswered(ucx, e);
      } catch (final CarrierException e) {
        return staged(
            ShuffleCode.UCX_CANNOT_READ
                .says("UCX cannot read an executor; its blocks are sent or staged")
                .because(e),
            e);
      }
    }

    private Route unanswered(final UcxNode way, final ExchangeException e) {
      if (e.reason() == Reason.AUTHENTICATION) {
        return staged(
            ShuffleCode.OWNER_UNAUTHENTICATED
                .says(
                    "an executor could not prove to belong to this application; its blocks are sent"
                        + " or staged")
                .remedy("use the same spark.authenticate.secret for all executors"),
            e);
      }
      if (e.reason() == Reason.BUSY) {
        return Route.staged(ShuffleCode.OWNER_BUSY.says("the owner is busy").because(e));
      }
      throwIfDead(e, way, ShuffleCode.OWNER_DEAD);
      return staged(
          ShuffleCode.OWNER_NOT_ASKED
              .says(
                  "an executor does not answer at its control port, so its blocks are sent or staged;"
                      + " it may have paused, as for a full garbage collection")
              .remedy("if a firewall is between, set spark.zerohop.port to a port that it permits")
              .because(e),
          e);
    }

    private Route peer(final Location owner) {
      try {
        return new Route(
            BlockPath.PEER, own(peers).connect(owner, source.executorId(), source.kept()), null);
      } catch (final ExchangeException e) {
        return switch (e.reason()) {
          case ABSENT, REFUSED -> unserved(e);
          case AUTHENTICATION ->
              staged(
                  ShuffleCode.PEER_UNAUTHENTICATED
                      .says(
                          "an executor of this node could not prove to belong to this application; its"
                              + " blocks are staged")
                      .remedy(
                          "use the same spark.authenticate.secret and user for all executors; if they"
                              + " are the same, another process serves the socket: set"
                              + " spark.zerohop.socket.dir to a folder of this application's own"),
                  e);
          default ->
              staged(
                  ShuffleCode.PEER_NOT_REACHED
                      .says("an executor of this node could not be reached; its blocks are staged")
                      .because(e),
                  e);
        };
      } catch (final ZerohopException e) {
        return staged(
            ShuffleCode.PEER_NOT_MAPPED
                .says("the memory of an executor cannot be mapped; its blocks are staged")
                .because(e),
            e);
      }
    }

    /**
     * Routes around a socket that is gone, or that nobody serves. Neither proves that the owner is
     * dead: whoever may write to the folder can remove the file or put another in its place. So
     * what serves its staged blocks is asked.
     */
    private Route unserved(final ExchangeException cause) {
      final boolean absent = cause.reason() == Reason.ABSENT;
      if (!allowed.contains(BlockPath.STAGED) || !liveness.answers(source, staging)) {
        throw new OwnerGoneException(
            (absent
                    ? ShuffleCode.PEER_ENDED
                        .says("an executor has ended: its socket is gone")
                        .remedy("if it still runs, check spark.zerohop.socket.dir")
                    : ShuffleCode.PEER_DEAD.says(
                        "an executor is dead: no process serves its socket"))
                .at(
                    "executor "
                        + source.executorId()
                        + ", socket "
                        + source.knownLocation().socket()),
            cause);
      }
      return staged(
          ShuffleCode.PEER_SOCKET_GONE
              .says("an executor's socket does not work; its blocks are staged")
              .because(absent ? "the socket is gone" : "no process serves the socket")
              .remedy(
                  "if the executor ended, see the driver's log; if it still runs, another program"
                      + " changes its socket folder: set spark.zerohop.socket.dir to a folder of this"
                      + " application's own"),
          null);
    }

    /** Stages the blocks, and logs each kind of trouble once for each owner. */
    private Route staged(final Message trouble, final @Nullable Exception cause) {
      final String executorId = source.executorId();
      if (reported.add(executorId + ' ' + trouble.code())) {
        trouble.at("executor " + executorId).warn(LOG, cause);
      }
      return Route.staged(trouble);
    }
  }

  /**
   * A check of whether owners live that cannot be asked, such as one behind a firewall. It tries to
   * reach what serves their staged blocks, and remembers the answer for a while, since every task
   * needs it. Thread safe.
   */
  static final class OwnerLiveness {
    /**
     * How long one that says nothing may take: long enough for three attempts of the kernel's, and
     * with the limit of the first contact (spark.zerohop.connect.timeout) ten seconds in all.
     */
    private static final Duration LIMIT = Duration.ofSeconds(5);

    private static final Duration MEMORY = Duration.ofSeconds(10);

    private final Clock clock;

    /** Until when answers of owners are believed, by their incarnation. */
    private final Map<Long, Long> answered = new ConcurrentHashMap<>();

    OwnerLiveness(final Clock clock) {
      this.clock = clock;
    }

    /** Whether an owner answers, or did a short time ago. May wait, for a limited time. */
    boolean answers(final BlockSource source, final FallbackTransport staging) {
      final long incarnation = source.knownLocation().incarnation();
      final Long until = answered.get(incarnation);
      if (until != null && !clock.isOver(until)) {
        return true;
      }
      final boolean lives = staging.answers(source, LIMIT);
      answered.compute(incarnation, (owner, before) -> lives ? clock.in(MEMORY) : null);
      return lives;
    }
  }
}
