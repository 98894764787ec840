package io.zerohop.shuffle.transport.ucx.jucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.ucx.jucx.JucxEndpoint.UnpackedKeys;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class UnpackedKeysTest {
  private final List<Integer> destroyed = new ArrayList<>();
  private int unpacked;
  private final UnpackedKeys<Integer> keys =
      new UnpackedKeys<>(packed -> unpacked++, destroyed::add);

  private static byte[] packed(final int number) {
    return ByteBuffer.allocate(Integer.BYTES).putInt(number).array();
  }

  @Test
  void eachIsUnpackedOnceAndDestroyedOnce() {
    assertThat(keys.of(packed(1))).isEqualTo(keys.of(packed(1))).isZero();
    assertThat(keys.of(packed(2))).isEqualTo(1);
    keys.trim();
    assertThat(destroyed).as("there are few").isEmpty();
    keys.destroy();
    keys.destroy();
    assertThat(destroyed).containsExactlyInAnyOrder(0, 1);
  }

  @Test
  void aPeerThatMakesEverNewSegmentsDoesNotFillTheMemory() {
    for (int segment = 0; segment < 5 * UnpackedKeys.MOST; segment++) {
      keys.of(packed(segment));
      keys.trim();
      assertThat(keys.size()).isLessThanOrEqualTo(UnpackedKeys.MOST);
    }
    keys.destroy();
    assertThat(destroyed).hasSize(unpacked).doesNotHaveDuplicates();
  }
}
