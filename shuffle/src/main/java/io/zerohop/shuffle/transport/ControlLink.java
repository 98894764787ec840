package io.zerohop.shuffle.transport;

import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;

/**
 * A connection to another executor's {@link ControlChannel}, for requests one way. Thread safe;
 * whoever connected owns and closes it.
 */
public interface ControlLink extends AutoCloseable {

  /**
   * Asks, without waiting. Questions of one link are answered in any order. The future completes on
   * a thread of the channel, which must not be blocked: exceptionally if the other end refuses
   * ({@link io.zerohop.device.ZerohopException} with its words), and with an {@link
   * io.zerohop.device.exchange.ExchangeException} (CLOSED) for all that is open when the link
   * breaks, or (TIMEOUT) if no answer came within the limit that the channel was made with.
   *
   * @param question from its position to its limit; not to be changed before the answer is there
   */
  CompletableFuture<ByteBuffer> ask(ByteBuffer question);

  /** Returns whether the link stands, as far as is known here. */
  boolean alive();

  /** Runs once when the link breaks or is closed; at once if it is already. */
  void onClosed(Runnable action);

  /** Breaks the link; the other end is told. Idempotent. */
  @Override
  void close();
}
