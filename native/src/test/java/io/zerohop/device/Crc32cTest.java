package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class Crc32cTest {
  private static int sum(final byte[] bytes, final int from, final int to) {
    final CRC32C sum = new CRC32C();
    sum.update(bytes, from, to - from);
    return (int) sum.getValue();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 255, 256, 257, 65_535, 65_536, 1_000_003, (1 << 24) + 259})
  void ofBothPartsTogether(final int second) {
    final Random random = new Random(second);
    for (final int first : new int[] {0, 1, 300, 70_000}) {
      final byte[] bytes = new byte[first + second];
      random.nextBytes(bytes);
      assertThat(Crc32c.join(sum(bytes, 0, first), sum(bytes, first, bytes.length), second))
          .as("%d and %d bytes", first, second)
          .isEqualTo(sum(bytes, 0, bytes.length));
    }
  }

  @Test
  void manyPartsOneByOne() {
    final byte[] bytes = new byte[50_000];
    final Random random = new Random(1);
    random.nextBytes(bytes);
    int joined = 0;
    for (int at = 0; at < bytes.length; ) {
      final int end = Math.min(bytes.length, at + random.nextInt(2_000));
      joined = Crc32c.join(joined, sum(bytes, at, end), end - at);
      at = end;
    }
    assertThat(joined).isEqualTo(sum(bytes, 0, bytes.length));
  }

  @Test
  void aFlippedBitOfOnePartShows() {
    final byte[] bytes = new byte[10_000];
    final int whole = sum(bytes, 0, bytes.length);
    final int second = sum(bytes, 4_000, bytes.length);
    bytes[17] ^= 1;
    assertThat(Crc32c.join(sum(bytes, 0, 4_000), second, 6_000)).isNotEqualTo(whole);
  }
}
