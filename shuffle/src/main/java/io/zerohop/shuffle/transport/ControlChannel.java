package io.zerohop.shuffle.transport;

import java.time.Duration;

/**
 * A channel for small requests and responses between the executors of one application, on any node.
 * Both ends of a link have proved that they belong to the application before the first question
 * passes. Thread safe; whoever made the channel owns and closes it.
 */
public interface ControlChannel extends AutoCloseable {

  /** The TCP port at which this executor answers. */
  int port();

  /**
   * Connects to another executor's channel. A link of its own for each call.
   *
   * @param host the executor's host as Spark knows it
   * @param limit longest time for connecting and proving, together
   * @throws io.zerohop.device.exchange.ExchangeException (REFUSED) if nobody listens there,
   *     (AUTHENTICATION) if the other could not prove to belong to this application or did not
   *     believe this one, (TIMEOUT) if it takes longer, (CLOSED) if this channel is closed
   */
  ControlLink connect(String host, int port, Duration limit);

  /** Connections that ended, since the start, before they had proved to belong here. */
  long strangers();

  /** Stops answering and closes all links, both ways. Idempotent. */
  @Override
  void close();
}
