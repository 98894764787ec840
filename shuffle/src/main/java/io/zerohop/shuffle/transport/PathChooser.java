package io.zerohop.shuffle.transport;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.shuffle.Location;
import io.zerohop.shuffle.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses the way to an owner's blocks: in place where that is possible and allowed, else staged.
 * Thread safe.
 */
public final class PathChooser {
  private static final Logger LOG = LoggerFactory.getLogger(PathChooser.class);

  private final Location self;
  private final Set<Path> allowed;
  private final LocalMemory local;
  private final PeerDirectory peers;
  private final Set<String> reported = ConcurrentHashMap.newKeySet();

  public PathChooser(
      final Location self,
      final Set<Path> allowed,
      final LocalMemory local,
      final PeerDirectory peers) {
    this.self = self;
    this.allowed = allowed;
    this.local = local;
    this.peers = peers;
  }

  /**
   * The route to an owner. May connect to it, which takes a limited time.
   *
   * @param owner null if its map status did not say where it is
   * @throws OwnerGoneException if the owner ran on this node and is dead; also if its socket file
   *     is not there and staging, which would show whether it lives, is not allowed
   * @throws ZerohopException (RETRY) if no way is allowed that is possible
   */
  public Route choose(final Location owner, final String executorId) {
    final Route route = best(owner, executorId);
    return route.path() == Path.STAGED ? staged(executorId, route.reason()) : route;
  }

  /**
   * The staged route, where nothing better is left.
   *
   * @throws ZerohopException (RETRY) if it is not allowed
   */
  public Route staged(final String executorId, final String reason) {
    if (!allowed.contains(Path.STAGED)) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          "blocks of executor "
              + executorId
              + " can only be staged ("
              + reason
              + "), and spark.zerohop.paths does not allow that; add 'staged' to it");
    }
    return Route.staged(reason);
  }

  private Route best(final Location owner, final String executorId) {
    if (owner == null) {
      return Route.staged("its map status has no location");
    }
    if (owner.incarnation() == self.incarnation()) {
      return allowed.contains(Path.LOCAL)
          ? Route.inPlace(local)
          : Route.staged("spark.zerohop.paths does not allow 'local'");
    }
    if (!allowed.contains(Path.PEER)) {
      return Route.staged("spark.zerohop.paths does not allow 'peer'");
    }
    if (!owner.bootId().equals(self.bootId())) {
      return Route.staged("it is on another node");
    }
    if (!owner.folderId().equals(self.folderId())) {
      report(
          executorId,
          "executor {} is on this node but has another socket folder; its blocks are staged. Let"
              + " both see the same spark.zerohop.socket.dir",
          null);
      return Route.staged("it has another spark.zerohop.socket.dir");
    }
    return peer(owner, executorId);
  }

  private Route peer(final Location owner, final String executorId) {
    try {
      return Route.inPlace(peers.connect(owner, executorId));
    } catch (final ExchangeException e) {
      switch (e.reason()) {
        case ABSENT:
          return absent(owner, executorId, e);
        case REFUSED:
          throw new OwnerGoneException(
              "executor " + executorId + " is dead: nobody serves its socket " + owner.socket(), e);
        case AUTHENTICATION:
          report(
              executorId,
              "executor {} could not prove to belong to this application; its blocks are staged."
                  + " Check spark.authenticate.secret and that both run as the same user",
              e);
          return Route.staged("it failed authentication, see spark.authenticate.secret");
        default:
          report(executorId, "executor {} could not be reached; its blocks are staged", e);
          return Route.staged("it could not be reached: " + e.getMessage());
      }
    } catch (final ZerohopException e) {
      report(executorId, "the memory of executor {} cannot be mapped; its blocks are staged", e);
      return Route.staged("its memory cannot be mapped: " + e.getMessage());
    }
  }

  /** It ended in good order, or lives on and something removed its socket file. */
  private Route absent(
      final Location owner, final String executorId, final ExchangeException cause) {
    if (!allowed.contains(Path.STAGED)) {
      throw new OwnerGoneException(
          "executor "
              + executorId
              + " has ended: its socket "
              + owner.socket()
              + " is gone (if it runs, see spark.zerohop.socket.dir)",
          cause);
    }
    report(
        executorId,
        "the socket of executor {} is gone; its blocks are staged. If the executor still runs,"
            + " something cleans its socket folder: set spark.zerohop.socket.dir to one that stays",
        null);
    return Route.staged("its socket " + owner.socket() + " is gone");
  }

  /** Logs each kind of trouble once for each owner. */
  private void report(final String executorId, final String message, final Exception cause) {
    if (reported.add(executorId + ' ' + message)) {
      LOG.warn(message, executorId, cause);
    }
  }
}
