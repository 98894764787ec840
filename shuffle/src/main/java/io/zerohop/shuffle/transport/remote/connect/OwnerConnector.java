package io.zerohop.shuffle.transport.remote.connect;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlLink;
import io.zerohop.shuffle.transport.remote.carrier.Carrier;
import io.zerohop.shuffle.transport.remote.reader.RemotePeer;
import io.zerohop.shuffle.transport.remote.wire.Questions;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Connects this executor to an owner that sends. It opens a link and introduces itself, which shows
 * that the owner also reaches this executor. Thread safe; owns nothing.
 */
public final class OwnerConnector implements RemotePeers.Connector<RemotePeer> {
  private static final Logger LOG = LoggerFactory.getLogger(OwnerConnector.class);

  private final Carrier carrier;
  private final Config conf;
  private final ContactListener contacts;
  private final Clock clock;

  /**
   * @param carrier stays the caller's
   * @param contacts hears of owners that were connected
   */
  public OwnerConnector(
      final Carrier carrier, final Config conf, final ContactListener contacts, final Clock clock) {
    this.carrier = carrier;
    this.conf = conf;
    this.contacts = contacts;
    this.clock = clock;
  }

  @Override
  public Duration limit() {
    return conf.connectTimeout().plus(conf.requestTimeout());
  }

  @Override
  public RemotePeer connect(final BlockSource source) {
    final ControlLink link = carrier.link(source, conf.connectTimeout());
    final String name = source.executorId();
    final RemotePeer peer =
        new RemotePeer(
            name, "what it sends (path 'sent')", ShuffleCode.SENDER_BROKEN_OFF, link, clock);
    boolean done = false;
    try {
      peer.hello(
          Questions.hello(carrier.address(), false),
          source.knownLocation().incarnation(),
          conf.requestTimeout(),
          "does not answer, or cannot reach this executor",
          "in its place");
      LOG.info("executor {} sends its blocks here, {}", name, carrier.describe());
      contacts.met(
          name, "sends its blocks, " + carrier.describe(), Link.SENT, Link.SENT.expected());
      done = true;
      return peer;
    } finally {
      if (!done) {
        peer.breakOff("it could not be connected");
      }
    }
  }
}
