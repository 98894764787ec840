package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Device;
import io.zerohop.device.Undo;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.remote.RemoteNode.RemoteThreads;
import io.zerohop.shuffle.transport.remote.RemoteService.BlockHolder;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's part of path {@code sent}: sends its map outputs to readers elsewhere, and receives
 * those that others send. Thread safe; owns the carrier.
 */
public final class SendingNode extends RemoteNode<SentReader, RemotePeer> {
  private static final Logger LOG = LoggerFactory.getLogger(SendingNode.class);

  private final Carrier carrier;
  private final Sends sends;
  private final ContactListener contacts;
  private final MessageReceiver arrivals = new MessageReceiver();

  private SendingNode(
      final Carrier carrier,
      final RemoteThreads threads,
      final Slabs slabs,
      final Sends sends,
      final RemoteService<SentReader> service,
      final Config conf,
      final Self self) {
    super(
        conf.connectTimeout().plus(conf.requestTimeout()),
        service,
        threads,
        slabs,
        conf,
        self.clock());
    this.contacts = self.contacts();
    this.carrier = carrier;
    this.sends = sends;
    carrier.receiver(arrivals);
    carrier.service(service);
  }

  /**
   * Starts it, if there is a carrier, and the configuration has path {@code sent}.
   *
   * @param starter starts the carrier, if there is one
   * @param holder finds own map outputs
   * @return absent if there is none, or it cannot be used here, which is said once in the log
   */
  public static @Nullable SendingNode start(
      final Config conf,
      final Self self,
      final @Nullable CarrierStarter starter,
      final Devices devices,
      final BlockHolder holder) {
    if (starter == null || !conf.paths().contains(BlockPath.SENT)) {
      return null;
    }
    return begin(
        ShuffleCode.SENDING_UNAVAILABLE
            .says(
                "this executor neither sends nor receives blocks; those that are not read in place"
                    + " are staged")
            .at("executor " + self.executorId()),
        "why nothing is sent",
        LOG,
        begun -> {
          final Clock clock = self.clock();
          final Device device = devices.of(devices.hasGpu() ? Tier.DEVICE : Tier.HOST);
          final Slabs slabs = new Slabs(device::hostBuffer, conf.fetch().receiveBuffers(), clock);
          begun.add(slabs);
          final RemoteThreads threads = new RemoteThreads();
          begun.add(threads);
          final Carrier carrier = starter.start(threads, slabs, clock);
          begun.add(carrier);
          final Sends sends = new Sends(carrier, slabs, devices, conf, clock, threads.sends());
          final SendingNode node =
              new SendingNode(
                  carrier,
                  threads,
                  slabs,
                  sends,
                  service(conf, self, sends, holder, threads),
                  conf,
                  self);
          LOG.info(
              "executor {} sends its blocks to other nodes, {}",
              self.executorId(),
              carrier.describe());
          return node;
        });
  }

  /** Returns the transport of blocks to here, for any reader: they go to pinned host memory. */
  public Transport transport() {
    return (source, blocks, sink) ->
        arrivals.fetch(peerOf(source), blocks, sink, slabs, threads.transfers());
  }

  @Override
  public void maintain() {
    carrier.maintain();
    super.maintain();
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
  @Override
  public long strangers() {
    return carrier.strangers();
  }

  @Override
  protected boolean end() {
    final boolean ended = carrier.end();
    threads.close();
    if (!ended) {
      ShuffleCode.SENDING_NOT_ENDED
          .says("sends did not end at shutdown; their memory stays mapped")
          .warn(LOG);
    }
    return ended;
  }

  @Override
  protected void free() {
    slabs.close();
  }

  /**
   * Opens a link to an owner that sends, and introduces this executor, which shows that the owner
   * also reaches it.
   */
  @Override
  protected RemotePeer connectTo(final BlockSource source) {
    final ControlLink link = carrier.link(source, conf.connectTimeout());
    final String name = source.executorId();
    final RemotePeer peer =
        new RemotePeer(
            name, "what it sends (path 'sent')", ShuffleCode.SENDER_BROKEN_OFF, link, clock);
    try (Undo undo = new Undo(() -> peer.breakOff("it could not be connected"))) {
      peer.hello(
          Questions.hello(carrier.address(), false),
          source.knownLocation().incarnation(),
          conf.requestTimeout(),
          "does not answer, or cannot reach this executor",
          "in its place");
      LOG.info("executor {} sends its blocks here, {}", name, carrier.describe());
      contacts.met(
          name, "sends its blocks, " + carrier.describe(), Link.SENT, Link.SENT.expected());
      return undo.keep(peer);
    }
  }
}
