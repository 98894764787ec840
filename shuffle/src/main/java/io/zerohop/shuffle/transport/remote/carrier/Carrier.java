package io.zerohop.shuffle.transport.remote.carrier;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.ControlLink;
import io.zerohop.shuffle.transport.ControlService;
import java.time.Duration;
import java.util.function.Consumer;

/**
 * Carries bytes between this executor and others, with requests about them and their responses.
 * Thread safe; whoever started it owns and ends it.
 */
public interface Carrier extends AutoCloseable {

  /**
   * Returns the address by which others reach this executor; opaque to all but the same carrier.
   * Not to be changed.
   */
  byte[] address();

  /**
   * A way to another executor. May wait for a limited time, though not for an answer: an executor
   * that is not there shows in what is sent to it.
   *
   * @param address what {@link #address} gave there
   * @param onFailure called once, by any thread, when the other is found to be lost; must not wait
   * @return owned by the caller
   * @throws CarrierException if the address is none, or cannot be reached from here
   */
  Road connect(byte[] address, Consumer<String> onFailure);

  /** Returns the sizes of its messages. */
  MessageSizes sizes();

  /** Sets the receiver of arriving bytes; called before anybody knows the address. */
  void receiver(Arrivals arrivals);

  /**
   * Sets the service that answers requests; called before anybody knows that this executor can be
   * asked.
   */
  void service(ControlService service);

  /**
   * A link by which an owner is asked. Waits no longer than the limit.
   *
   * @return owned by the caller
   * @throws io.zerohop.device.exchange.ExchangeException if it cannot be
   */
  ControlLink link(BlockSource owner, Duration limit);

  /**
   * Runs small chores: ends requests that were not answered in time, and removes executors that are
   * gone.
   */
  void maintain();

  /** Messages, since the start, that nobody here had asked for. */
  long strangers();

  /** Bytes, since the start, that compression has kept from the network. */
  long savedBytes();

  /** Returns a description for the log. */
  String describe();

  /**
   * Ends what is under way, with a failure. Waits for a limited time. Idempotent.
   *
   * @return false if something may still read memory that was to be sent
   */
  boolean end();

  @Override
  default void close() {
    end();
  }
}
