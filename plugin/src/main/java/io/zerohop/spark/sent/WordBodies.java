package io.zerohop.spark.sent;

import io.zerohop.spark.sent.Uploads.Arriving;
import io.zerohop.spark.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * The bodies of words. A request or a farewell begins with the sender: two bytes of length and the
 * executor's id. Each body ends with the CRC32C of the rest.
 */
final class WordBodies {
  private static final int SUM_BYTES = 4;

  private WordBodies() {}

  /** A body that names no sender. */
  static ByteBuffer body(final ByteBuffer words) {
    return summed(ByteBuffer.allocate(words.remaining() + SUM_BYTES).put(words.duplicate()));
  }

  /** A body that does. */
  static ByteBuffer body(final String sender, final ByteBuffer words) {
    final byte[] name = sender.getBytes(StandardCharsets.UTF_8);
    final ByteBuffer body =
        ByteBuffer.allocate(Short.BYTES + name.length + words.remaining() + SUM_BYTES);
    return summed(body.putShort((short) name.length).put(name).put(words.duplicate()));
  }

  private static ByteBuffer summed(final ByteBuffer body) {
    return body.putInt(sum(body.duplicate().flip())).flip();
  }

  private static int sum(final ByteBuffer words) {
    final CRC32C sum = new CRC32C();
    sum.update(words);
    return (int) sum.getValue();
  }

  /** Returns a body without its checksum; null if that is wrong. */
  static @Nullable ByteBuffer checked(final byte[] body) {
    final int length = body.length - SUM_BYTES;
    if (length < 0
        || ByteBuffer.wrap(body).getInt(length) != sum(ByteBuffer.wrap(body, 0, length))) {
      return null;
    }
    return ByteBuffer.wrap(body, 0, length);
  }

  /** Reads who says it; null if that makes no sense. */
  static @Nullable String sender(final ByteBuffer words) {
    if (words.remaining() < Short.BYTES) {
      return null;
    }
    final int length = words.getShort();
    if (length <= 0 || length > words.remaining()) {
      return null;
    }
    final byte[] name = new byte[length];
    words.get(name);
    return new String(name, StandardCharsets.UTF_8);
  }

  /**
   * A word on its way, read by an executor once it is there. Thread safe: an event loop brings it,
   * and any thread may give it up.
   */
  static final class ArrivingWord implements Arriving {
    private final Executor executor;
    private final Consumer<@Nullable ByteBuffer> taken;
    private final Runnable end;

    /** Absent once no more of it is taken. */
    private byte @Nullable [] body;

    private int at;

    /**
     * @param taken gets what it says, or null if it was damaged
     * @param end run once when it is not needed any more
     */
    ArrivingWord(
        final int length,
        final Executor executor,
        final Consumer<@Nullable ByteBuffer> taken,
        final Runnable end) {
      this.body = new byte[length];
      this.executor = executor;
      this.taken = taken;
      this.end = end;
    }

    @Override
    public synchronized void bytes(final ByteBuffer piece) {
      final byte[] to = body;
      if (to != null) {
        final int length = piece.remaining();
        piece.get(to, at, length);
        at += length;
      }
    }

    @Override
    public Reply complete() {
      final byte[] whole = stop();
      if (whole == null) {
        return Reply.DROPPED;
      }
      try {
        executor.execute(() -> hand(whole));
        return Reply.TAKEN;
      } catch (final RejectedExecutionException e) {
        end.run(); // This executor is shutting down.
        return Reply.DROPPED;
      }
    }

    private void hand(final byte[] whole) {
      try {
        taken.accept(checked(whole));
      } finally {
        end.run();
      }
    }

    @Override
    public void failed(final String why) {
      if (stop() != null) {
        end.run();
      }
    }

    synchronized boolean isOver() {
      return body == null;
    }

    /** Takes no more of it; returns what has come, and null if it was over before. */
    private synchronized byte @Nullable [] stop() {
      final byte[] come = body;
      body = null;
      return come;
    }
  }
}
