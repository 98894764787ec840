package io.zerohop.shuffle.transport.remote;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.ServedReader.ServedLease;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A reader that receives blocks, with the connection to it. Thread safe. */
public final class SentReader extends ServedReader {
  private static final Logger LOG = LoggerFactory.getLogger(SentReader.class);

  private final Carrier carrier;
  private final Executor executor;

  /** When transfers began that are still being sent. */
  private final Map<Long, Long> sending = new ConcurrentHashMap<>();

  @GuardedBy("this")
  private byte @Nullable [] address;

  /** The way to the reader while it is good; absent before the first message, and after a loss. */
  @GuardedBy("this")
  private @Nullable Back back;

  /** A road, which the carrier's thread marks as lost before anything else is done about it. */
  private record Back(AtomicBoolean lost, Road road) {}

  /**
   * @param executor runs what a carrier's thread must not wait for
   */
  SentReader(
      final Carrier carrier,
      final Executor executor,
      final Consumer<ServedLease> left,
      final Clock clock) {
    super(left, clock);
    this.carrier = carrier;
    this.executor = executor;
  }

  /** The reader has said where it is. */
  synchronized void address(final byte[] told) {
    address = told;
  }

  /**
   * The way to the reader. May wait for the carrier, a limited time.
   *
   * @throws ZerohopException (FALLBACK) if it cannot be reached or has not said where it is
   */
  synchronized Road back() {
    if (address == null || isGone()) {
      throw new ZerohopException(
          ZerohopException.Category.FALLBACK, "the reader has left, or has not sent its address");
    }
    final Back known = back;
    if (known != null && !known.lost().get()) {
      return known.road();
    }
    if (known != null) {
      drop(known.lost());
    }
    final AtomicBoolean lost = new AtomicBoolean();
    final Road road = carrier.connect(address, why -> lost(lost, why));
    back = new Back(lost, road);
    return road;
  }

  /**
   * Told by the carrier's thread, which must not wait: a thread inside {@link #back} may be waiting
   * for it.
   */
  private void lost(final AtomicBoolean road, final String why) {
    LOG.debug("a reader was lost: {}", why);
    road.set(true);
    executor.execute(() -> drop(road));
  }

  private synchronized void dropCurrent() {
    if (back != null) {
      drop(back.lost());
    }
  }

  /**
   * The next message goes by a new road. Does nothing where that one has come already.
   *
   * @param road by the word that says that it is lost
   */
  private synchronized void drop(final AtomicBoolean road) {
    final Back known = back;
    if (known != null && known.lost() == road) {
      back = null;
      known.road().close();
    }
  }

  /** Messages of a transfer are on their way to the reader, until {@link #sent}. */
  void sends(final long transfer) {
    sending.put(transfer, clock().nanos());
  }

  /** None of them is any more. */
  void sent(final long transfer) {
    sending.remove(transfer);
  }

  /**
   * Besides what all readers leave: if it has not even taken what was sent to it, the way to it is
   * closed, with which all of that ends. It holds memory of this process, and a place that others
   * wait for.
   */
  @Override
  void expire(final long nanos) {
    final long now = clock().nanos();
    if (sending.values().stream().anyMatch(since -> now - since > nanos)) {
      sending.replaceAll((transfer, since) -> now); // It ends in the background.
      ShuffleCode.SEND_NOT_TAKEN
          .says(
              "a reader on another node did not take what was sent to it for "
                  + nanos / 1_000_000_000
                  + " s; it will ask again")
          .warn(LOG);
      dropCurrent();
    }
    super.expire(nanos);
  }

  @Override
  void close() {
    super.close(); // Nobody makes a way back any more.
    dropCurrent();
  }

  /**
   * Sends the messages of one transfer to a reader, a few concurrently. Any thread may be the one
   * that sends the next.
   */
  static final class MessageSender {
    private final Road to;
    private final long transfer;
    private final List<Message> messages;
    private final int atOnce;
    private final Consumer<@Nullable String> end;
    private int next;
    private int underWay;
    private @Nullable String failure;
    private boolean ended;

    /** Bytes of this process that go to an offset of the transfer. */
    record Message(long offset, long address, long bytes) {}

    /**
     * @param atOnce how many are under way at a time
     * @param end called once, when none is under way any more, with the reason unless all were sent
     */
    MessageSender(
        final Road to,
        final long transfer,
        final List<Message> messages,
        final int atOnce,
        final Consumer<@Nullable String> end) {
      this.to = to;
      this.transfer = transfer;
      this.messages = messages;
      this.atOnce = atOnce;
      this.end = end;
    }

    void start() {
      sendMore();
    }

    /** Bytes of all messages. */
    long bytes() {
      return messages.stream().mapToLong(Message::bytes).sum();
    }

    /** Returns the reason why not all messages are sent; absent while they are. */
    synchronized @Nullable String failure() {
      return failure;
    }

    /**
     * Returns the response with the number of bytes; a refusal if it is known that they will not
     * come, for which the reader would wait.
     */
    ByteBuffer answer() {
      final String failed = failure();
      return failed == null
          ? Wire.granted(Long.BYTES).putLong(bytes()).flip()
          : Wire.refusal(new CarrierException("the blocks cannot be sent: " + failed, null));
    }

    private void sendMore() {
      final List<Message> now = new ArrayList<>();
      synchronized (this) {
        while (failure == null && next < messages.size() && underWay < atOnce) {
          now.add(messages.get(next++));
          underWay++;
        }
      }
      for (final Message message : now) {
        send(message);
      }
      finish();
    }

    /** A message that cannot even be begun has failed, like one that got lost. */
    private void send(final Message message) {
      try {
        to.send(transfer, message.offset(), message.address(), message.bytes(), this::sent);
      } catch (final RuntimeException | OutOfMemoryError e) { // Of direct memory, mostly.
        sent(String.valueOf(e.getMessage()));
      }
    }

    private void sent(final @Nullable String failed) {
      synchronized (this) {
        underWay--;
        failure = failure == null ? failed : failure;
      }
      sendMore();
    }

    private void finish() {
      synchronized (this) {
        if (ended || underWay > 0 || (failure == null && next < messages.size())) {
          return;
        }
        ended = true;
      }
      if (failure != null) {
        to.lost(transfer); // The reader may have been told already that they come.
      }
      end.accept(failure);
    }
  }
}
