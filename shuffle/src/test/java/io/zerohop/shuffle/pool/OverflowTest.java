package io.zerohop.shuffle.pool;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class OverflowTest {
  private static final PoolFullException FULL = new PoolFullException("no room", 10, null);

  private final Overflow overflow = new Overflow();

  @Test
  void eachShuffleIsSaidOnceForEachPool() {
    assertThat(overflow.note(1, Tier.DEVICE, 10, FULL)).isTrue();
    assertThat(overflow.note(1, Tier.DEVICE, 20, FULL)).isFalse();
    assertThat(overflow.note(1, Tier.HOST, 5, FULL)).isTrue();
    assertThat(overflow.note(2, Tier.DEVICE, 0, FULL)).isTrue();
    assertThat(overflow.bytes(Tier.DEVICE)).isEqualTo(30);
    assertThat(overflow.bytes(Tier.HOST)).isEqualTo(5);
  }

  @Test
  void aShuffleThatComesBackIsSaidAnew() {
    overflow.note(1, Tier.HOST, 0, FULL);
    overflow.forget(1);
    assertThat(overflow.note(1, Tier.HOST, 0, FULL)).isTrue();
  }
}
