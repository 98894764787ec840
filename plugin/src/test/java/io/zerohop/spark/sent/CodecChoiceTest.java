package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.conf.Config.SentCodec;
import io.zerohop.spark.sent.MessageCodec.CodecChoice;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Links and codecs as they are in tables: bytes a nanosecond, and what is left of a byte. */
class CodecChoiceTest {
  private static final int MESSAGE = 2 << 20;
  private static final int AT_ONCE = 4;
  private static final double GIGABIT = 0.118;
  private static final double TEN_GIGABITS = 1.18;

  private final TestClock clock = TestClock.standing();
  private final CodecChoice choice = new CodecChoice(SentCodec.AUTO, clock);
  private final Map<MessageCodec, Integer> chosen = new EnumMap<>(MessageCodec.class);

  /** Sends messages, so that some always wait for the network. */
  private void send(
      final int messages, final double link, final double lz4Ratio, final double zstdRatio) {
    chosen.clear();
    for (int i = 1; i < AT_ONCE; i++) {
      choice.begins();
    }
    for (int i = 0; i < messages; i++) {
      final MessageCodec codec = choice.next(MESSAGE);
      chosen.merge(codec, 1, Integer::sum);
      double left = 1;
      if (codec != MessageCodec.PLAIN) {
        final boolean isLz4 = codec == MessageCodec.LZ4;
        left = isLz4 ? lz4Ratio : zstdRatio;
        choice.compressed(
            codec, MESSAGE, (int) (MESSAGE * left), (long) (MESSAGE / (isLz4 ? 0.7 : 0.4)));
        left = left > 0.9 ? 1 : left;
      }
      choice.begins();
      clock.advance(Duration.ofNanos((long) (MESSAGE * left / link)));
      choice.ended((long) (MESSAGE * left));
    }
    for (int i = 1; i < AT_ONCE; i++) {
      choice.ended(0);
    }
  }

  private int share(final MessageCodec codec) {
    final int all = chosen.values().stream().mapToInt(Integer::intValue).sum();
    return 100 * chosen.getOrDefault(codec, 0) / all;
  }

  @Test
  void aSlowLinkGetsTheCodecThatLeavesLeast() {
    send(1_000, GIGABIT, 0.68, 0.48);
    assertThat(share(MessageCodec.ZSTD)).isGreaterThan(90);
  }

  @Test
  void whatCannotBeCompressedIsTriedNowAndThen() {
    send(1_000, GIGABIT, 1.0, 1.0);
    assertThat(share(MessageCodec.PLAIN)).isGreaterThan(90);
    assertThat(share(MessageCodec.LZ4)).isPositive();
  }

  @Test
  void dataThatChangeAreNoticed() {
    send(1_000, GIGABIT, 1.0, 1.0);
    send(500, GIGABIT, 0.3, 0.25);
    assertThat(share(MessageCodec.PLAIN)).isLessThan(40);
    send(500, GIGABIT, 1.0, 1.0);
    assertThat(share(MessageCodec.PLAIN)).isGreaterThan(80);
  }

  /** Threads that compress have no more than the link has already. */
  @Test
  void aFastLinkCostsNothing() {
    send(1_000, TEN_GIGABITS, 0.68, 0.48);
    assertThat(share(MessageCodec.PLAIN)).isEqualTo(100);
  }

  /** Compression may be what messages wait for: then the link's old measurement says nothing. */
  @Test
  void aLinkThatHasBecomeFastIsNotCompressedFor() {
    send(1_000, GIGABIT, 0.68, 0.48);
    int compressed = 0;
    for (int i = 0; i < 100; i++) { // One at a time: the link keeps up.
      compressed += choice.next(MESSAGE) == MessageCodec.PLAIN ? 0 : 1;
      choice.begins();
      choice.ended(MESSAGE);
    }
    assertThat(compressed).isLessThan(40);
    assertThat(choice.next(MESSAGE)).isEqualTo(MessageCodec.PLAIN);
  }

  @Test
  void nobodyWaitsForALinkThatKeepsUp() {
    for (int i = 0; i < 100; i++) {
      assertThat(choice.next(MESSAGE)).isEqualTo(MessageCodec.PLAIN);
      choice.begins();
      clock.advance(Duration.ofNanos((long) (MESSAGE / GIGABIT)));
      choice.ended(MESSAGE);
    }
  }

  @Test
  void shortMessagesGoAsTheyAre() {
    send(100, GIGABIT, 0.68, 0.48);
    assertThat(choice.next(CodecChoice.MIN_BYTES - 1)).isEqualTo(MessageCodec.PLAIN);
  }

  @Test
  void whatAUserWantsIsDone() {
    assertThat(new CodecChoice(SentCodec.ZSTD, clock).next(MESSAGE)).isEqualTo(MessageCodec.ZSTD);
    assertThat(new CodecChoice(SentCodec.LZ4, clock).next(MESSAGE)).isEqualTo(MessageCodec.LZ4);
    final CodecChoice none = new CodecChoice(SentCodec.NONE, clock);
    for (int i = 0; i < 100; i++) {
      none.begins();
      clock.advance(Duration.ofNanos(MESSAGE * 100L));
      assertThat(none.next(MESSAGE)).isEqualTo(MessageCodec.PLAIN);
    }
  }
}
