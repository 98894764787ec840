package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class OncePerKeyTest {
  @Test
  void eachKeyIsNewOnceAndTheirNumberIsBounded() {
    final OncePerKey once = new OncePerKey();
    int fresh = 0;
    for (int i = 0; i < 10 * OncePerKey.MAX_KEYS; i++) {
      fresh += once.isNew("peer " + i / 2) ? 1 : 0;
    }
    assertThat(fresh).isEqualTo(OncePerKey.MAX_KEYS);
    assertThat(once.isNew("peer 0")).isFalse();
  }
}
