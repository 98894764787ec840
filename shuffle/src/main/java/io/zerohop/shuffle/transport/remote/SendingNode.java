package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Device;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.remote.carrier.Carrier;
import io.zerohop.shuffle.transport.remote.carrier.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.remote.connect.OwnerConnector;
import io.zerohop.shuffle.transport.remote.connect.RemotePeers;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.owner.BlockHolder;
import io.zerohop.shuffle.transport.remote.owner.RemoteService;
import io.zerohop.shuffle.transport.remote.owner.Sends;
import io.zerohop.shuffle.transport.remote.owner.SentReader;
import io.zerohop.shuffle.transport.remote.reader.MessageReceiver;
import io.zerohop.shuffle.transport.remote.reader.RemotePeer;
import io.zerohop.shuffle.transport.remote.reader.RemoteTransfer;
import io.zerohop.shuffle.transport.remote.reader.SentTransfer;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's part of path {@code sent}: sends its map outputs to readers elsewhere, and receives
 * those that others send. Thread safe; owns the carrier.
 */
public final class SendingNode implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SendingNode.class);

  private final Carrier carrier;
  private final RemoteThreads threads;
  private final Slabs slabs;
  private final MessageReceiver arrivals = new MessageReceiver();
  private final Sends sends;
  private final RemoteService<SentReader> service;
  private final RemotePeers<RemotePeer> peers;
  private volatile boolean alive = true;

  private SendingNode(
      final Config conf,
      final Self self,
      final Carrier carrier,
      final Devices devices,
      final BlockHolder holder,
      final RemoteThreads threads,
      final Slabs slabs) {
    this.carrier = carrier;
    this.threads = threads;
    this.slabs = slabs;
    sends = new Sends(carrier, slabs, devices, conf, self.clock(), threads.sends());
    service =
        new RemoteService<>(
            self.incarnation(),
            sends,
            holder,
            conf.readyTimeout(),
            self.clock(),
            threads.answers(),
            threads.sends());
    peers =
        new RemotePeers<>(
            new OwnerConnector(carrier, conf, self.contacts(), self.clock()), conf, self.clock());
    carrier.receiver(arrivals);
    carrier.service(service);
  }

  /**
   * Starts it, if there is a carrier, and the configuration has path {@code sent}.
   *
   * @param starter starts the carrier; null if there is none
   * @param holder finds own map outputs
   * @return null if there is none, or it cannot be used here, which is said once in the log
   */
  public static SendingNode start(
      final Config conf,
      final Self self,
      final CarrierStarter starter,
      final Devices devices,
      final BlockHolder holder) {
    if (starter == null || !conf.paths().contains(Path.SENT)) {
      return null;
    }
    RemoteThreads threads = null;
    Carrier carrier = null;
    final Device device = devices.of(devices.hasGpu() ? Tier.DEVICE : Tier.HOST);
    final Slabs slabs = new Slabs(device::hostBuffer, conf.fetch().receiveBuffers(), self.clock());
    boolean done = false;
    try {
      threads = new RemoteThreads();
      carrier = starter.start(threads.sends(), threads.transfers(), slabs, self.clock());
      final SendingNode node =
          new SendingNode(conf, self, carrier, devices, holder, threads, slabs);
      done = true;
      LOG.info(
          "executor {} sends its blocks to other nodes, {}", self.executorId(), carrier.describe());
      return node;
    } catch (final RuntimeException | LinkageError | OutOfMemoryError e) {
      // Whatever it is, blocks can go another way. Netty says by an error that there is no thread.
      ShuffleCode.SENDING_UNAVAILABLE
          .says(
              "this executor neither sends nor receives blocks; those that are not read in place"
                  + " are staged")
          .at("executor " + self.executorId())
          .because(e)
          .info(LOG);
      LOG.debug("why nothing is sent", e);
      return null;
    } finally {
      if (!done && carrier != null) {
        carrier.close();
      }
      if (!done && threads != null) {
        threads.close();
      }
      if (!done) {
        slabs.close();
      }
    }
  }

  /**
   * Makes sure that an owner sends here, which takes a limited time when it is met for the first
   * time or was lost.
   *
   * @throws io.zerohop.device.exchange.ExchangeException if it cannot be asked
   * @throws io.zerohop.shuffle.transport.remote.carrier.CarrierException if it cannot send
   */
  public void connect(final BlockSource source) {
    peers.connect(source);
  }

  /** Returns whether an owner is connected. */
  public boolean isConnected(final Location location) {
    return peers.connected(location) != null;
  }

  /** Returns whether an owner was connected before. */
  public boolean hasMet(final Location location) {
    return peers.hasMet(location);
  }

  /** Returns the transport of blocks to here, for any reader: they go to pinned host memory. */
  public Transport transport() {
    return this::fetch;
  }

  private void fetch(
      final BlockSource source, final List<Block> blocks, final Transport.Sink sink) {
    final RemotePeer peer = peers.connected(source.location());
    if (peer == null) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          "the connection to executor " + source.executorId() + " was lost");
    }
    RemoteTransfer.startEach(
        blocks, some -> new SentTransfer(peer, some, sink, slabs, arrivals, threads.transfers()));
  }

  /** Small chores that nobody waits for. */
  public void maintain() {
    carrier.maintain();
    peers.check();
    service.maintain();
    slabs.trim();
  }

  /** Owners that are connected. */
  public int connected() {
    return peers.connected();
  }

  /** Readers that are connected. */
  public int readers() {
    return service.readers();
  }

  /** Leases that readers elsewhere hold here. */
  public int leases() {
    return service.leases();
  }

  /** Bytes that are being sent to readers now. */
  public long sendingBytes() {
    return sends.bytes();
  }

  /** Bytes, since the start, that compression has kept from the network. */
  public long savedBytes() {
    return carrier.savedBytes();
  }

  /** Messages that nobody here had asked for. */
  public long strangers() {
    return carrier.strangers();
  }

  /** Pieces of memory that bytes are received in, or sent from, now, each shared by many blocks. */
  public int slabsTaken() {
    return slabs.taken();
  }

  /** Returns whether this node's memory may still be read or written although it was closed. */
  public boolean isAlive() {
    return alive;
  }

  /** Ends what is under way, both ways, and frees everything. Takes a limited time. Idempotent. */
  @Override
  public void close() {
    peers.close();
    alive = !carrier.end();
    threads.close();
    if (alive) {
      ShuffleCode.SENDING_NOT_ENDED
          .says("sends did not end at shutdown; their memory stays mapped")
          .warn(LOG);
      return;
    }
    service.close();
    slabs.close();
  }
}
