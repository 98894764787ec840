package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.device.WaitException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxSettings;
import io.zerohop.shuffle.transport.ucx.reader.RemotePeer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The owners on other nodes that this executor reads, each connected when a reader first needs it
 * and again after it was lost or not read for long. Thread safe; owns the contacts.
 */
public final class RemotePeers implements AutoCloseable {
  private final PeerConnector connector;
  private final Duration requestLimit;
  private final Duration deviceLimit;
  private final Duration idleLimit;
  private final Clock clock;
  private final Map<Long, Contact> contacts = new ConcurrentHashMap<>();
  private volatile boolean closed;

  /**
   * @param connector how owners are connected
   */
  public RemotePeers(final PeerConnector connector, final UcxSettings settings) {
    this.connector = connector;
    this.requestLimit = settings.requestLimit();
    this.deviceLimit = settings.deviceLimit();
    this.idleLimit = settings.idleLimit();
    this.clock = settings.clock();
  }

  /** The owner if it is connected; else null. Does not wait. */
  public RemotePeer connected(final Location location) {
    final Contact contact = contacts.get(location.incarnation());
    return contact == null ? null : contact.connected();
  }

  /** Whether the owner was connected before: then it is dead if nobody answers any more. */
  public boolean hasMet(final Location location) {
    final Contact contact = contacts.get(location.incarnation());
    return contact != null && contact.hasMet();
  }

  /**
   * Connects to an owner unless it is. Waits for a limited time.
   *
   * @throws ExchangeException as {@link ControlChannel#connect} does
   * @throws UcxException if UCX cannot read its memory
   * @throws WaitException (RETRY) if interrupted
   */
  public RemotePeer connect(final Location location, final String host, final String executorId) {
    final Contact contact =
        contacts.computeIfAbsent(location.incarnation(), first -> new Contact(clock));
    final RemotePeer known = contact.connected();
    if (known != null) {
      return known;
    }
    contact.lock(connector.limit(), executorId);
    try {
      final RemotePeer meanwhile = contact.connected();
      return meanwhile != null ? meanwhile : meet(contact, location, host, executorId);
    } finally {
      contact.unlock();
    }
  }

  private RemotePeer meet(
      final Contact contact, final Location location, final String host, final String executorId) {
    final RuntimeException recent = contact.recentFailure();
    if (recent != null) {
      throw recent;
    }
    try {
      if (closed) {
        throw new ExchangeException(Reason.CLOSED, "this executor is shutting down");
      }
      final RemotePeer peer = connector.connect(contact, location, host, executorId);
      contact.connected(peer);
      if (closed) {
        peer.close(); // Who closes may have passed it.
      }
      return peer;
    } catch (final WaitException e) {
      throw e;
    } catch (final RuntimeException e) {
      if (Thread.currentThread().isInterrupted()) {
        throw Contact.cancelled(executorId); // That says nothing of the owner.
      }
      final RuntimeException why =
          e instanceof ExchangeException || e instanceof UcxException
              ? e
              : new UcxException("executor " + executorId + " cannot be read: " + e, e);
      contact.failed(why);
      throw why;
    }
  }

  /**
   * Gives up peers from which nothing comes although something should, and disconnects from those
   * that nobody has read for long.
   */
  public void check() {
    final long nanos = requestLimit.toNanos() / 2;
    final long ofTransfer = Math.max(nanos, deviceLimit.toNanos());
    final long idle = idleLimit.toNanos();
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
