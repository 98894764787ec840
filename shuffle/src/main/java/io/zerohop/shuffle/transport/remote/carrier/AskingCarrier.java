package io.zerohop.shuffle.transport.remote.carrier;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.ControlLink;
import io.zerohop.shuffle.transport.ControlService;
import java.time.Duration;

/**
 * A carrier that brings questions and answers, too: all that is needed between two executors.
 * Thread safe; whoever started it owns and ends it.
 */
public interface AskingCarrier extends Carrier, AutoCloseable {

  /**
   * What answers questions from now on; set before anybody knows that this executor can be asked.
   */
  void service(ControlService service);

  /**
   * A link by which an owner is asked. Waits no longer than the limit.
   *
   * @return owned by the caller
   * @throws io.zerohop.device.exchange.ExchangeException if it cannot be
   */
  ControlLink link(BlockSource owner, Duration limit);

  /** Small chores: ends what was not answered in time, and lets go of who is gone. */
  void maintain();

  /** Messages, since the start, that nobody here had asked for. */
  long strangers();

  /** Bytes, since the start, that compression has kept from the network. */
  long savedBytes();

  /** How it carries, for the log. */
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
