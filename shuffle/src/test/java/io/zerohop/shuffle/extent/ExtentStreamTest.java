package io.zerohop.shuffle.extent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

class ExtentStreamTest {

  /** Every call is made on a plain array's stream too. */
  @Test
  void behavesAsAStreamOverAnArray() throws IOException {
    final Random random = new Random(5);
    for (int round = 0; round < 300; round++) {
      final byte[] bytes = new byte[1 + random.nextInt(3000)];
      random.nextBytes(bytes);
      final UnsafeBuffer memory = new UnsafeBuffer(ByteBuffer.allocateDirect(bytes.length));
      memory.putBytes(0, bytes);
      final ExtentList extents = new ExtentList();
      for (int at = 0; at < bytes.length; ) {
        final int length = Math.min(bytes.length - at, 1 + random.nextInt(500));
        extents.add(memory.addressOffset() + at, length, false);
        at += length;
      }
      try (InputStream actual = extents.stream(0, extents.size(), () -> true);
          InputStream expected = new ByteArrayInputStream(bytes)) {
        same(random, actual, expected);
      }
    }
  }

  private static void same(
      final Random random, final InputStream actual, final InputStream expected)
      throws IOException {
    while (expected.available() > 0) {
      assertThat(actual.available()).isEqualTo(expected.available());
      switch (random.nextInt(3)) {
        case 0:
          assertThat(actual.read()).isEqualTo(expected.read());
          break;
        case 1:
          final long count = random.nextInt(200);
          assertThat(actual.skip(count)).isEqualTo(expected.skip(count));
          break;
        default:
          final byte[] one = new byte[700];
          final byte[] two = new byte[700];
          final int offset = random.nextInt(100);
          final int length = random.nextInt(600);
          assertThat(actual.read(one, offset, length))
              .isEqualTo(expected.read(two, offset, length));
          assertThat(Arrays.equals(one, two)).isTrue();
          break;
      }
    }
    assertThat(actual.read()).isEqualTo(-1);
    assertThat(actual.read(new byte[3], 0, 3)).isEqualTo(-1);
    assertThat(actual.read(new byte[3], 0, 0)).isZero();
    assertThat(actual.available()).isZero();
  }

  @Test
  void readsNothingOnceTheMemoryIsNotHeld() throws IOException {
    final UnsafeBuffer memory = new UnsafeBuffer(ByteBuffer.allocateDirect(10));
    final ExtentList extents = new ExtentList();
    extents.add(memory.addressOffset(), 10, false);
    final boolean[] held = {true};
    try (InputStream stream = extents.stream(0, 1, () -> held[0])) {
      assertThat(stream.read()).isZero();
      held[0] = false;
      assertThatThrownBy(stream::read).isInstanceOf(IOException.class);
    }
  }
}
