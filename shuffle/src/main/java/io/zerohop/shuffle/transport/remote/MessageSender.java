package io.zerohop.shuffle.transport.remote;

import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Sends the messages of one transfer to a reader, a few concurrently. Any thread may be the one
 * that sends the next.
 */
final class MessageSender {
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
