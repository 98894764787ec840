package io.zerohop.spark.blocktransfer.sent;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;

/**
 * Chooses what the messages to one reader are compressed with. A codec pays if more bytes of blocks
 * get through with it: no more than the network carries of what it leaves of them, and no more than
 * one thread compresses, though two are there: tasks want the processors, too, and where these are
 * what is short, a network looks slow that is not. Both are measured, the network only while
 * messages wait for it, so nothing is compressed on a link that keeps up. Thread safe.
 */
final class CodecChoice {
  /** Messages that are shorter go as they are. */
  static final int LEAST_BYTES = 16 << 10;

  /** How much more has to get through: compression takes time of tasks, too, at both ends. */
  private static final double LEAST_GAIN = 1.4;

  /** So many messages under way say that the network is what they wait for. */
  private static final int BUSY = 3;

  /** One measurement of the network. */
  private static final long RATE_BYTES = 8 << 20;

  /** Every so many messages another codec is tried: data change. */
  private static final int RETRY = 32;

  /** How much a new measurement counts. */
  private static final double WEIGHT = 0.3;

  /** What a user wants. */
  enum Wish {
    AUTO,
    NONE,
    LZ4,
    ZSTD;

    static Wish of(final String text) {
      return valueOf(text.toUpperCase(Locale.ROOT));
    }
  }

  private final Wish wish;
  private final Clock clock;

  @GuardedBy("this")
  private final Map<MessageCodec, Codec> codecs = new EnumMap<>(MessageCodec.class);

  /** Bytes that the network carries in a nanosecond; 0 as long as nobody has waited for it. */
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

  /** One codec as it has done lately; guarded by the choice. */
  private static final class Codec {
    /** Bytes of blocks in a nanosecond of one thread, at first what is to be expected. */
    private double speed;

    /** What is left of a byte, at first what makes a trial worth it. */
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

    double gets(final double linkRate) {
      return Math.min(linkRate / ratio, speed);
    }
  }

  CodecChoice(final Wish wish, final Clock clock) {
    this.wish = wish;
    this.clock = clock;
    // Bytes a nanosecond on one core of today's (docs/measurements tell no absolute figures).
    codecs.put(MessageCodec.LZ4, new Codec(0.6));
    codecs.put(MessageCodec.ZSTD, new Codec(0.3));
  }

  /** What the next message, of so many bytes, is to be compressed with. */
  synchronized MessageCodec next(final int bytes) {
    if (bytes < LEAST_BYTES) {
      return MessageCodec.PLAIN;
    }
    return switch (wish) {
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
    double most = rate * LEAST_GAIN;
    for (final Map.Entry<MessageCodec, Codec> each : codecs.entrySet()) {
      final boolean again = asked % RETRY == each.getKey().ordinal();
      if (again && each.getValue().speed > rate * LEAST_GAIN) {
        return each.getKey();
      }
      final double gets = each.getValue().gets(rate);
      if (gets > most) {
        most = gets;
        best = each.getKey();
      }
    }
    return best;
  }

  /** A message was compressed, whether or not it is sent so. */
  synchronized void compressed(
      final MessageCodec codec, final int bytes, final int left, final long nanos) {
    codecs.get(codec).did((double) bytes / Math.max(1, nanos), (double) left / bytes);
  }

  /** A message is given to the network. */
  synchronized void begins() {
    passed();
    underWay++;
  }

  /**
   * A message has come.
   *
   * @param bytes that the network has carried; 0 if it was lost
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

  /** Counts the time since something last began or ended; says whether messages waited. */
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
