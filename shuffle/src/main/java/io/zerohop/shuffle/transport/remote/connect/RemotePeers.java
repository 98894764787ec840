package io.zerohop.shuffle.transport.remote.connect;

import io.zerohop.device.Message;
import io.zerohop.device.WaitException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.remote.carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.reader.RemotePeer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The owners that this executor reads by one carrier, each connected when a reader first needs it
 * and again after it was lost or not read for long. Thread safe; owns the contacts.
 */
public final class RemotePeers<P extends RemotePeer> implements AutoCloseable {
  private final Connector<P> connector;
  private final Config conf;
  private final Clock clock;
  private final Map<Long, Contact<P>> contacts = new ConcurrentHashMap<>();
  private volatile boolean closed;

  /** How an owner is connected. Thread safe. */
  public interface Connector<P extends RemotePeer> {

    /** How long others wait for the one who connects; they do without it then. */
    Duration limit();

    /**
     * Connects to an owner. Called by one thread at a time for each owner; waits for a limited
     * time.
     *
     * @return owned by the caller
     * @throws ExchangeException if it cannot be asked
     * @throws CarrierException if bytes do not come from it
     */
    P connect(BlockSource source);
  }

  /**
   * The owners of one carrier.
   *
   * @param connector how they are connected
   * @param conf says how long answers, copies on GPUs and idle connections may take
   */
  public RemotePeers(final Connector<P> connector, final Config conf, final Clock clock) {
    this.connector = connector;
    this.conf = conf;
    this.clock = clock;
  }

  /** The owner if it is connected; else null. Does not wait. */
  public P connected(final Location location) {
    final Contact<P> contact = contacts.get(location.incarnation());
    return contact == null ? null : contact.connected();
  }

  /** Whether the owner was connected before: then it is dead if nobody answers any more. */
  public boolean hasMet(final Location location) {
    final Contact<P> contact = contacts.get(location.incarnation());
    return contact != null && contact.hasMet();
  }

  /**
   * Connects to an owner unless it is. Waits for a limited time.
   *
   * @throws ExchangeException if it cannot be asked
   * @throws CarrierException if bytes do not come from it
   * @throws WaitException (RETRY) if interrupted
   */
  public P connect(final BlockSource source) {
    final Contact<P> contact =
        contacts.computeIfAbsent(source.location().incarnation(), first -> new Contact<>(clock));
    final P known = contact.connected();
    if (known != null) {
      return known;
    }
    final String executorId = source.executorId();
    contact.lock(connector.limit(), executorId);
    try {
      final P meanwhile = contact.connected();
      return meanwhile != null ? meanwhile : meet(contact, source);
    } finally {
      contact.unlock();
    }
  }

  private P meet(final Contact<P> contact, final BlockSource source) {
    final RuntimeException recent = contact.recentFailure();
    if (recent != null) {
      throw recent;
    }
    try {
      if (closed) {
        throw new ExchangeException(Reason.CLOSED, "this executor is shutting down");
      }
      final P peer = connector.connect(source);
      contact.connected(peer);
      if (closed) {
        peer.close(); // Who closes may have passed it.
      }
      return peer;
    } catch (final WaitException e) {
      throw e;
    } catch (final RuntimeException e) {
      if (Thread.currentThread().isInterrupted()) {
        throw Contact.cancelled(source.executorId()); // That says nothing of the owner.
      }
      final RuntimeException why =
          e instanceof ExchangeException || e instanceof CarrierException
              ? e
              : new CarrierException(
                  Message.of("an executor cannot be read")
                      .at("executor " + source.executorId())
                      .because(e),
                  e);
      contact.failed(why);
      throw why;
    }
  }

  /**
   * Gives up peers from which nothing comes although something should, and disconnects from those
   * that nobody has read for long.
   */
  public void check() {
    final long nanos = conf.requestTimeout().toNanos() / 2;
    final long ofTransfer = Math.max(nanos, conf.device().timeout().toNanos());
    final long idle = conf.ucx().idle().toNanos();
    contacts.values().forEach(contact -> contact.check(nanos, ofTransfer, idle));
  }

  /** Owners that are connected. */
  public int connected() {
    return (int) contacts.values().stream().filter(it -> it.connected() != null).count();
  }

  @Override
  public void close() {
    closed = true;
    contacts.values().forEach(Contact::close);
  }
}
