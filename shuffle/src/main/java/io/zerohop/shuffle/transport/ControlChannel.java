package io.zerohop.shuffle.transport;

import io.zerohop.device.exchange.ExchangeException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A channel for small requests and responses between the executors of one application, on any node.
 * Both ends of a link have proved that they belong to the application before the first question
 * passes. Thread safe; whoever made the channel owns and closes it.
 */
public interface ControlChannel extends AutoCloseable {

  /** The TCP port at which this process answers; 0 if it only asks. */
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

  /**
   * A connection to another executor's {@link ControlChannel}, for requests one way. Thread safe;
   * whoever connected owns and closes it.
   */
  interface ControlLink extends AutoCloseable {

    /**
     * Asks, without waiting. Questions of one link are answered in any order. The future completes
     * on a thread of the channel, which must not be blocked: exceptionally if the other end refuses
     * ({@link io.zerohop.device.ZerohopException} with its words), and with an {@link
     * io.zerohop.device.exchange.ExchangeException} (CLOSED) for all that is open when the link
     * breaks, or (TIMEOUT) if no answer came within the limit that the channel was made with.
     *
     * @param question from its position to its limit; not to be changed before the answer is there
     */
    CompletableFuture<ByteBuffer> ask(ByteBuffer question);

    /**
     * The same for a question that the other end answers when it is its turn, which may be later
     * than others are answered.
     *
     * @param turn for which the answer is waited, if that is longer than for others
     */
    default CompletableFuture<ByteBuffer> ask(final ByteBuffer question, final Duration turn) {
      return ask(question);
    }

    /** Returns whether the link stands, as far as is known here. */
    boolean alive();

    /** Runs once when the link breaks or is closed; at once if it is already. */
    void onClosed(Runnable action);

    /** Breaks the link; the other end is told. Idempotent. */
    @Override
    void close();
  }

  /** A link that breaks once: then what is open fails, and actions run. Thread safe. */
  abstract class BreakableLink implements ControlLink {
    private final Set<CompletableFuture<ByteBuffer>> open = ConcurrentHashMap.newKeySet();
    private final List<Runnable> actions = new ArrayList<>();
    private volatile boolean broken;

    /** Returns the answer of a new question, to be completed; it fails with the link. */
    protected final CompletableFuture<ByteBuffer> begin() {
      final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      open.add(answer);
      answer.whenComplete((got, failure) -> open.remove(answer));
      if (broken) {
        answer.completeExceptionally(closed(null));
      }
      return answer;
    }

    /**
     * Returns the failure of a question whose link broke.
     *
     * @param cause absent if there is none but that
     */
    protected abstract ExchangeException closed(@Nullable Throwable cause);

    /** Breaks it. Returns false if it was broken before. */
    protected final boolean breakNow() {
      final List<Runnable> due;
      final boolean first;
      synchronized (actions) {
        first = !broken;
        broken = true;
        due = List.copyOf(actions);
        actions.clear();
      }
      open.forEach(answer -> answer.completeExceptionally(closed(null)));
      due.forEach(Runnable::run);
      return first;
    }

    @Override
    public boolean alive() {
      return !broken;
    }

    @Override
    public final void onClosed(final Runnable action) {
      synchronized (actions) {
        if (!broken) {
          actions.add(action);
          return;
        }
      }
      action.run();
    }
  }

  /** Answers the requests of a {@link ControlChannel}. Thread safe. */
  interface ControlService {

    /**
     * A question has come. Called on a thread of the channel, which must not be blocked.
     *
     * @param link names the link that it came by; never used again for another
     * @param question valid during this call only
     * @param answer to be called once, by any thread, now or later; what is given must not be
     *     changed afterwards
     * @throws RuntimeException to refuse; the message travels to the one who asked
     */
    void asked(long link, ByteBuffer question, Consumer<ByteBuffer> answer);

    /** The link is gone, and nothing comes by it any more. Called once for each link that asked. */
    void disconnected(long link);
  }
}
