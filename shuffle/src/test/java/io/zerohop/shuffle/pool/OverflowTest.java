package io.zerohop.shuffle.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.pool.Tiers.Overflow;
import org.junit.jupiter.api.Test;

class OverflowTest {
  private static final PoolFullException FULL = new PoolFullException("no room", null);

  private final Overflow overflow = new Overflow();

  @Test
  void eachShuffleIsSaidOnceForEachPool() {
    assertThat(overflow.say(1, Tier.DEVICE, FULL)).isTrue();
    assertThat(overflow.say(1, Tier.DEVICE, FULL)).isFalse();
    assertThat(overflow.say(1, Tier.HOST, FULL)).isTrue();
    assertThat(overflow.say(2, Tier.DEVICE, FULL)).isTrue();
  }

  @Test
  void aShuffleThatComesBackIsSaidAnew() {
    overflow.say(1, Tier.HOST, FULL);
    overflow.forget(1);
    assertThat(overflow.say(1, Tier.HOST, FULL)).isTrue();
  }

  @Test
  void whatLeftTheGpuIsCounted() {
    overflow.overflowed(10);
    overflow.overflowed(20);
    assertThat(overflow.overflowedBytes()).isEqualTo(30);
  }
}
