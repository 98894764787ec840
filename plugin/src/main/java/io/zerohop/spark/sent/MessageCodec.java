package io.zerohop.spark.sent;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config.SentCodec;
import java.nio.ByteBuffer;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import org.jspecify.annotations.Nullable;

/**
 * A codec of messages. Buffers are direct. A codec whose native library cannot be loaded fails like
 * one whose output does not fit. Thread safe.
 */
enum MessageCodec {
  PLAIN(MessageCodec::neither, MessageCodec::neither),
  LZ4(
      (from, to) ->
          LZ4Factory.fastestInstance()
              .fastCompressor()
              .compress(from, from.position(), from.remaining(), to, to.position(), to.remaining()),
      (from, to) ->
          LZ4Factory.fastestInstance()
              .safeDecompressor()
              .decompress(
                  from, from.position(), from.remaining(), to, to.position(), to.remaining())),
  /** At level 1. */
  ZSTD(
      (from, to) ->
          size(
              Zstd.compressDirectByteBuffer(
                  to, to.position(), to.remaining(), from, from.position(), from.remaining(), 1)),
      (from, to) ->
          size(
              Zstd.decompressDirectByteBuffer(
                  to, to.position(), to.remaining(), from, from.position(), from.remaining())));

  /**
   * The result if the output does not fit, the input is not of this codec, or it cannot be loaded.
   */
  static final int NO_ROOM = -1;

  private static final MessageCodec[] ALL = values();

  /** Returns the codec of a number that came over the network; null if there is none. */
  static @Nullable MessageCodec of(final int ordinal) {
    return ordinal > 0 && ordinal < ALL.length ? ALL[ordinal] : null;
  }

  private final Step compressing;
  private final Step expanding;

  /** Writes the rest of a buffer to another, in another form; returns the bytes written. */
  private interface Step {
    int run(ByteBuffer from, ByteBuffer to);
  }

  MessageCodec(final Step compressing, final Step expanding) {
    this.compressing = compressing;
    this.expanding = expanding;
  }

  /**
   * Compresses the rest of a buffer into the rest of another; positions stay.
   *
   * @return how many bytes it takes there, or {@link #NO_ROOM}
   */
  int compress(final ByteBuffer from, final ByteBuffer to) {
    return run(compressing, from, to);
  }

  /**
   * The other way. Writes nowhere else, whatever the bytes are.
   *
   * @return how many bytes it takes there, or {@link #NO_ROOM}
   */
  int expand(final ByteBuffer from, final ByteBuffer to) {
    return run(expanding, from, to);
  }

  private static int run(final Step step, final ByteBuffer from, final ByteBuffer to) {
    try {
      return step.run(from, to);
    } catch (final LZ4Exception | ZstdException | LinkageError e) {
      return NO_ROOM;
    }
  }

  /** Zstd says by an exception or by its result that it failed. */
  private static int size(final long result) {
    return Zstd.isError(result) ? NO_ROOM : Math.toIntExact(result);
  }

  private static int neither(final ByteBuffer from, final ByteBuffer to) {
    throw new UnsupportedOperationException();
  }

  /**
   * Chooses the codec of the messages to one reader by measured throughput. With a codec, the
   * throughput of blocks is the smaller of two figures: the link's throughput divided by the
   * codec's compression ratio, and what one thread compresses. Two threads are there, but tasks
   * need the processors, too, and a busy processor makes a link look slow.
   *
   * <p>The link is measured only while messages wait for it. While none does, it is the faster
   * part, the measurement is dropped, and nothing is compressed. Thread safe.
   */
  static final class CodecChoice {
    /** Shorter messages are not compressed. */
    static final int MIN_BYTES = 16 << 10;

    /** The least gain in throughput that is worth the processor time at both ends. */
    private static final double MIN_GAIN = 1.4;

    /** With so many messages under way, they wait for the link. */
    private static final int BUSY = 3;

    /** Bytes of one measurement of the link. */
    private static final long RATE_BYTES = 8 << 20;

    /**
     * Every so many messages another codec is tried, since data change. After so many messages in a
     * row that did not find others waiting, the link's measurement is dropped.
     */
    private static final int RETRY = 32;

    /** The weight of a new measurement in the moving average. */
    private static final double WEIGHT = 0.3;

    private final SentCodec wanted;
    private final Clock clock;

    @GuardedBy("this")
    private final Map<MessageCodec, Codec> codecs = new EnumMap<>(MessageCodec.class);

    /** Throughput of the link in bytes a nanosecond; 0 if no message has waited for it lately. */
    @GuardedBy("this")
    private double rate;

    @GuardedBy("this")
    private int underWay;

    @GuardedBy("this")
    private long since;

    @GuardedBy("this")
    private long busyNanos;

    @GuardedBy("this")
    private long busyBytes;

    @GuardedBy("this")
    private int asked;

    /** Messages in a row that found fewer than {@link #BUSY} under way. */
    @GuardedBy("this")
    private int notWaiting;

    /** Moving averages of one codec; guarded by the choice. */
    private static final class Codec {
      /** What one thread compresses, in bytes a nanosecond. */
      private double speed;

      /** Compressed size over size; at first one that makes a trial worth it. */
      private double ratio = 0.5;

      private boolean tried;

      Codec(final double speed) {
        this.speed = speed;
      }

      void did(final double newSpeed, final double newRatio) {
        speed = tried ? WEIGHT * newSpeed + (1 - WEIGHT) * speed : newSpeed;
        ratio = tried ? WEIGHT * newRatio + (1 - WEIGHT) * ratio : newRatio;
        tried = true;
      }

      double throughput(final double linkRate) {
        return Math.min(linkRate / ratio, speed);
      }
    }

    CodecChoice(final SentCodec wanted, final Clock clock) {
      this.wanted = wanted;
      this.clock = clock;
      // Until they are measured: low, so that a codec is tried only on a slow link.
      codecs.put(MessageCodec.LZ4, new Codec(0.6));
      codecs.put(MessageCodec.ZSTD, new Codec(0.3));
    }

    /** The codec of the next message. */
    synchronized MessageCodec next(final int bytes) {
      if (bytes < MIN_BYTES) {
        return MessageCodec.PLAIN;
      }
      notWaiting = underWay < BUSY ? notWaiting + 1 : 0;
      if (notWaiting >= RETRY) {
        rate = 0;
      }
      return switch (wanted) {
        case NONE -> MessageCodec.PLAIN;
        case LZ4 -> MessageCodec.LZ4;
        case ZSTD -> MessageCodec.ZSTD;
        case AUTO -> rate == 0 ? MessageCodec.PLAIN : best();
      };
    }

    @GuardedBy("this")
    private MessageCodec best() {
      asked++;
      MessageCodec best = MessageCodec.PLAIN;
      double max = rate * MIN_GAIN;
      for (final Map.Entry<MessageCodec, Codec> each : codecs.entrySet()) {
        final boolean again = asked % RETRY == each.getKey().ordinal();
        if (again && each.getValue().speed > rate * MIN_GAIN) {
          return each.getKey();
        }
        final double throughput = each.getValue().throughput(rate);
        if (throughput > max) {
          max = throughput;
          best = each.getKey();
        }
      }
      return best;
    }

    /** A message was compressed, even if it is then sent without. */
    synchronized void compressed(
        final MessageCodec codec, final int bytes, final int left, final long nanos) {
      Objects.requireNonNull(codecs.get(codec), "one that compresses")
          .did((double) bytes / Math.max(1, nanos), (double) left / bytes);
    }

    /** A message is handed to the network. */
    synchronized void begins() {
      passed();
      underWay++;
    }

    /**
     * A message was acknowledged, or failed.
     *
     * @param bytes on the network; 0 if it failed
     */
    synchronized void ended(final long bytes) {
      final boolean busy = passed();
      underWay--;
      if (!busy) {
        return;
      }
      busyBytes += bytes;
      if (busyBytes >= RATE_BYTES) {
        final double now = (double) busyBytes / Math.max(1, busyNanos);
        rate = rate == 0 ? now : WEIGHT * now + (1 - WEIGHT) * rate;
        busyBytes = 0;
        busyNanos = 0;
      }
    }

    /** Adds up the time since the last begin or end; says whether messages waited in it. */
    @GuardedBy("this")
    private boolean passed() {
      final long now = clock.nanos();
      final boolean busy = underWay >= BUSY;
      if (busy) {
        busyNanos += now - since;
      }
      since = now;
      return busy;
    }
  }
}
