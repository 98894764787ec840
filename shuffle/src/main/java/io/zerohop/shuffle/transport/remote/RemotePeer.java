package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.LogCode;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connected owner: the link for requests, and the transfers from it that are under way. Once the
 * link breaks it is closed as a whole and made anew for the next reader. Thread safe; owns the
 * link.
 */
public class RemotePeer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RemotePeer.class);

  private final String name;
  private final String way;
  private final LogCode brokenOff;
  private final ControlLink link;
  private final Clock clock;
  private final Set<RemoteTransfer> transfers = ConcurrentHashMap.newKeySet();
  private final Silence silence;
  private volatile long lastProgress;
  private volatile @Nullable String broken;

  /**
   * A peer that was just connected.
   *
   * @param name of the executor, for messages
   * @param way by which it is read, for the log
   * @param brokenOff with which the log says that it is not any more
   * @param clock by which it is idle, or silent
   */
  public RemotePeer(
      final String name,
      final String way,
      final LogCode brokenOff,
      final ControlLink link,
      final Clock clock) {
    this.name = name;
    this.way = way;
    this.brokenOff = brokenOff;
    this.link = link;
    this.clock = clock;
    this.lastProgress = clock.nanos();
    this.silence = new Silence();
    link.onClosed(() -> breakOff("the connection to it was lost"));
  }

  /** The clock by which transfers from it are idle. */
  public final Clock clock() {
    return clock;
  }

  public final String name() {
    return name;
  }

  public final boolean alive() {
    return broken == null && link.alive();
  }

  /** Asks, and takes the answer apart: what follows the word that grants it. */
  public final CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
    return link.ask(question).thenApply(this::granted);
  }

  /** The same for what is answered when it is its turn, so long from now at most. */
  final CompletableFuture<ByteBuffer> ask(final ByteBuffer question, final Duration turn) {
    return link.ask(question, turn).thenApply(this::granted);
  }

  private ByteBuffer granted(final ByteBuffer answer) {
    progress();
    if (answer.get() != Wire.GRANTED) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY, Wire.TEXT.decode(answer).toString());
    }
    return answer;
  }

  /**
   * Introduces this executor, and returns what follows in the answer. Waits for a limited time.
   *
   * @param question the introduction
   * @param incarnation the life of the owner that has to answer
   * @param silence what it does if it says nothing, for the message
   * @param place where another one would answer, for the message
   * @throws ExchangeException if nobody answers; (REPLACED) if somebody else does
   */
  public final ByteBuffer hello(
      final ByteBuffer question,
      final long incarnation,
      final Duration limit,
      final String silence,
      final String place) {
    final ByteBuffer answer;
    try {
      answer = clock.get(ask(question), limit);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ExchangeException(Reason.CLOSED, "interrupted while connecting", e);
    } catch (final TimeoutException e) {
      throw new ExchangeException(Reason.TIMEOUT, "executor " + name + " " + silence, e);
    } catch (final ExecutionException e) {
      if (e.getCause() instanceof ExchangeException known) {
        throw known;
      }
      final Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
      throw new ExchangeException(Reason.PROTOCOL, Message.of(cause), e);
    }
    if (answer.getInt() != Wire.VERSION || answer.getLong() != incarnation) {
      throw new ExchangeException(
          Reason.REPLACED, "executor " + name + " has ended, and another one answers " + place);
    }
    return answer;
  }

  /** Records progress: bytes have arrived. */
  public final void progress() {
    lastProgress = clock.nanos();
  }

  final void begin(final RemoteTransfer transfer) {
    if (transfers.isEmpty()) {
      progress();
    }
    transfers.add(transfer);
    final String why = broken;
    if (why != null) {
      transfer.fail(lost(why));
    }
  }

  final void end(final RemoteTransfer transfer) {
    transfers.remove(transfer);
  }

  /**
   * Breaks it off if transfers are under way and it does not even answer a ping. Gives up single
   * transfers that get nowhere although it does. Closes it if nothing was read from it for long:
   * who is just about to read finds it closed, and connects anew. Called often, by one thread.
   *
   * @param conf has the limits of silence, of a transfer without a next byte, and of idle time
   * @return whether it is alive
   */
  public final boolean check(final Config conf) {
    // The time behind the look at the transfers: one that begins sets it first.
    if (transfers.isEmpty()) {
      if (clock.since(lastProgress) > conf.ucx().idle().toNanos()) {
        breakOff("nothing was read from it for " + conf.ucx().idle().toSeconds() + " s");
      }
      return alive();
    }
    final long limit = conf.requestTimeout().toNanos() / 2;
    if (silence.lasts(limit)) {
      breakOff(
          "nothing arrived from it for "
              + limit / 1_000_000
              + " ms (half of spark.zerohop.request.timeout)");
    }
    final long ofTransfer = Math.max(limit, conf.device().timeout().toNanos());
    transfers.forEach(transfer -> transfer.checkStalled(ofTransfer));
    return alive();
  }

  /**
   * Measures the silence of an owner that was asked for a sign of life. Of time in which nobody
   * looked, half of a ping's counts at most: when this process itself paused, what the owner said
   * meanwhile is still to be read. For the thread that checks.
   */
  private final class Silence {
    /** How often it is looked at, at least, in the time that a ping has. */
    private static final int LOOKS = 2;

    private long lastLook = clock.nanos();

    /** What was heard last when the ping was sent. */
    private long heard;

    private @Nullable CompletableFuture<ByteBuffer> ping;

    /** How long it is out. */
    private long nanos;

    /** Sends a ping after half of the limit; says whether that had no answer for the other half. */
    boolean lasts(final long limit) {
      final long half = limit / 2;
      final long step = Math.min(clock.since(lastLook), half / LOOKS);
      lastLook = clock.nanos();
      final long last = lastProgress;
      if (clock.since(last) <= half) {
        return false;
      }
      final CompletableFuture<ByteBuffer> out = ping;
      if (out == null || heard != last) {
        heard = last;
        nanos = 0;
        ping = ask(Questions.ping());
        return false;
      }
      nanos += step;
      if (nanos < half && out.isDone()) {
        ping = ask(Questions.ping()); // The owner had no room for the last one.
      }
      return nanos >= half;
    }
  }

  /** Ends everything that is under way; readers connect anew, or find that the owner is dead. */
  public final void breakOff(final String why) {
    synchronized (this) {
      if (broken != null) {
        return;
      }
      broken = why;
    }
    brokenOff
        .says("stopped reading an executor by " + way)
        .at("executor " + name)
        .because(why)
        .info(LOG);
    // In this order: with the link the owner's leases end, and what is still asked for needs them.
    disconnect();
    link.close();
    transfers.forEach(transfer -> transfer.fail(lost(why)));
  }

  /** Ends what there is besides the link. Called once, when the peer is broken off. */
  protected void disconnect() {}

  /**
   * Returns whether it was broken off; once it was, {@link #disconnect} has been called or will be.
   */
  protected final boolean isBroken() {
    return broken != null;
  }

  private ZerohopException lost(final String why) {
    return new ZerohopException(
        ZerohopException.Category.RETRY,
        ShuffleCode.CONNECTION_LOST
            .says("the connection to an executor was lost")
            .at("executor " + name)
            .because(why));
  }

  @Override
  public final void close() {
    breakOff("this executor is shutting down");
  }
}
