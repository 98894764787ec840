package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Topology;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.PosixException;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.samenode.PeerDirectory.Greeting;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The service of this node's segment server: lanes, segments and loans for connected peers. A
 * peer's lanes and loans last as long as its connection.
 */
public final class SharedMemory implements SegmentDirectory {
  private final RootSegment root;
  private final Tiers tiers;
  private final Consumer<Throwable> onFailure;
  private final @Nullable Keeping keeping;
  private final PeerLanes lanes;

  /**
   * @param view what peers are told of this executor's GPU
   * @param keeping hears what a keeper holds; absent if this executor has none, and nobody may keep
   * @param onFailure freezes the memory when the server fails, before any lane is dropped
   */
  public SharedMemory(
      final RootSegment root,
      final Tiers tiers,
      final Topology.View view,
      final @Nullable Keeping keeping,
      final Consumer<Throwable> onFailure) {
    this.root = root;
    this.tiers = tiers;
    this.keeping = keeping;
    this.onFailure = onFailure;
    this.lanes = new PeerLanes(root, view);
  }

  @Override
  public byte[] connected(final PeerInfo peer) {
    return lanes.connected(peer);
  }

  @Override
  public @Nullable SegmentHandle export(final long segmentId) {
    if (segmentId == root.memory().id()) {
      return root.memory().segment().export();
    }
    return tiers.export(segmentId);
  }

  @Override
  public PeerLink.@Nullable Loan lend(final PeerInfo peer, final long bytes) {
    final Pool pool = tiers.device();
    return pool == null ? null : pool.lent().lend(peer.connectionId(), bytes);
  }

  @Override
  public void returned(final PeerInfo peer, final long segmentId) {
    final Pool pool = tiers.device();
    if (pool != null) {
      pool.lent().takeBack(peer.connectionId(), segmentId);
    }
  }

  /** The root shows a keeper that this executor lives, and is not about to end. */
  @Override
  public @Nullable SegmentHandle keep(final PeerInfo peer, final long segmentId) {
    final int port = Location.keeperPortOf(peer.name());
    if (keeping == null || port < 0) {
      return null;
    }
    keeping.connected(peer.connectionId(), port, Location.copiesGpu(peer.name()));
    if (segmentId == root.memory().id()) {
      return keeping.isEnding() ? null : root.memory().segment().export();
    }
    return tiers.exportOwn(segmentId);
  }

  @Override
  public void kept(final PeerInfo peer, final long segmentId) {
    if (keeping != null) {
      keeping.kept(peer.connectionId(), segmentId);
    }
  }

  @Override
  public void unkept(final PeerInfo peer, final long segmentId) {
    if (keeping != null) {
      keeping.unkept(peer.connectionId(), segmentId);
    }
  }

  @Override
  public void failed(final Throwable cause) {
    onFailure.accept(cause);
  }

  @Override
  public void disconnected(final PeerInfo peer) {
    if (keeping != null) {
      keeping.disconnected(peer.connectionId());
    }
    lanes.disconnected(peer);
    final Pool pool = tiers.device();
    if (pool != null) {
      pool.lent().takeBackAll(peer.connectionId());
    }
  }

  /**
   * The lanes of connected peers: each has a block of the root's as long as its connection lasts.
   * Thread safe.
   */
  static final class PeerLanes {
    private final RootSegment root;
    private final Topology.View view;
    private final Map<Long, Integer> blocks = new ConcurrentHashMap<>();

    /**
     * @param root has the lanes; stays the caller's
     * @param view what peers are told of the owner's GPU
     */
    PeerLanes(final RootSegment root, final Topology.View view) {
      this.root = root;
      this.view = view;
    }

    /** Returns the greeting of a peer, with its lanes if some are left. */
    byte[] connected(final PeerInfo peer) {
      final int block = root.lanes().connect();
      if (block >= 0) {
        blocks.put(peer.connectionId(), block);
      }
      final long generation = block < 0 ? 0 : root.lanes().generation(block);
      return new Greeting(block, generation, root.memory().id(), root.incarnation(), view).encode();
    }

    void disconnected(final PeerInfo peer) {
      final Integer block = blocks.remove(peer.connectionId());
      if (block != null) {
        root.lanes().disconnect(block);
      }
    }
  }

  /**
   * Detects that another process removed or replaced this node's socket file. Used by one thread.
   */
  public static final class SocketWatch {
    private static final Logger LOG = LoggerFactory.getLogger(SocketWatch.class);

    private final java.nio.file.Path socket;
    private final FileStatus own;
    private boolean reported;

    /**
     * @param socket the file, which is there now
     */
    public SocketWatch(final java.nio.file.Path socket) {
      this.socket = socket;
      this.own = Descriptor.statusOf(socket.toString());
    }

    /** Returns whether the file is gone, or is another one. */
    public boolean isGone() {
      try {
        return !own.sameFile(Descriptor.statusOf(socket.toString()));
      } catch (final PosixException e) {
        return e.errno() == PosixException.ENOENT || e.errno() == PosixException.ENOTDIR;
      }
    }

    /**
     * Logs that the file is gone, the first time.
     *
     * @return whether it was the first time
     */
    public boolean report() {
      if (reported) {
        return false;
      }
      reported = true;
      ShuffleCode.SOCKET_REMOVED
          .says(
              "another program removed or replaced this executor's socket; executors that are not"
                  + " connected yet read its blocks staged")
          .at(socket.toString())
          .remedy("set spark.zerohop.socket.dir to a folder of this application's own")
          .warn(LOG);
      return true;
    }
  }
}
