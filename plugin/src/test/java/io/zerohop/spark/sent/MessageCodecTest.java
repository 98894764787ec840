package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

class MessageCodecTest {
  private static final int BYTES = 100_000;
  private static final byte UNTOUCHED = 99;

  private final Random random = new Random(3);

  private ByteBuffer bytes(final int values) {
    final ByteBuffer buffer = ByteBuffer.allocateDirect(BYTES);
    while (buffer.hasRemaining()) {
      buffer.put((byte) random.nextInt(values));
    }
    return buffer.flip();
  }

  private static ByteBuffer untouched(final int bytes) {
    final ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
    while (buffer.hasRemaining()) {
      buffer.put(UNTOUCHED);
    }
    return buffer.flip();
  }

  @ParameterizedTest
  @EnumSource(mode = Mode.EXCLUDE, names = "PLAIN")
  void whatWasCompressedExpandsToWhatItWas(final MessageCodec codec) {
    final ByteBuffer plain = bytes(5);
    final ByteBuffer small = untouched(BYTES).position(4);
    final int length = codec.compress(plain, small);
    assertThat(length).isBetween(1, BYTES * 9 / 10);
    final ByteBuffer back = untouched(BYTES);
    assertThat(codec.expand(small.limit(4 + length), back)).isEqualTo(BYTES);
    assertThat(back).isEqualTo(plain);
  }

  @ParameterizedTest
  @EnumSource(mode = Mode.EXCLUDE, names = "PLAIN")
  void whatDoesNotGetSmallerHasNoRoom(final MessageCodec codec) {
    assertThat(codec.compress(bytes(256), untouched(BYTES * 9 / 10)))
        .isEqualTo(MessageCodec.NO_ROOM);
  }

  /** Bytes of strangers, or of a bad network: nothing beyond the room is written. */
  @ParameterizedTest
  @EnumSource(mode = Mode.EXCLUDE, names = "PLAIN")
  void damagedBytesStayInTheirRoom(final MessageCodec codec) {
    final ByteBuffer plain = bytes(5);
    final ByteBuffer small = untouched(BYTES);
    final int length = codec.compress(plain, small);
    small.limit(length);
    for (int i = 0; i < 2_000; i++) {
      final int at = random.nextInt(length);
      final byte was = small.get(at);
      small.put(at, (byte) random.nextInt());
      final ByteBuffer room = untouched(BYTES + 1_000);
      room.limit(1 + random.nextInt(BYTES));
      final int limit = room.limit();
      assertThat(codec.expand(small, room)).isLessThanOrEqualTo(limit);
      room.clear();
      for (int beyond = limit; beyond < room.capacity(); beyond += 100) {
        assertThat(room.get(beyond)).isEqualTo(UNTOUCHED);
      }
      small.put(at, was);
    }
  }
}
