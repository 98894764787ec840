package io.zerohop.shuffle.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.pool.Devices.PeerGpus;
import org.junit.jupiter.api.Test;

class PeerGpusTest {
  private final PeerGpus gpus = new PeerGpus();

  @Test
  void oneThatNobodyHasMetIsReachable() {
    assertThat(gpus.unreachable()).isFalse();
    gpus.lost(1);
    assertThat(gpus.unreachable()).isFalse();
  }

  @Test
  void mostOfThePeersDecide() {
    gpus.mapped("same GPU");
    gpus.refused("a");
    assertThat(gpus.unreachable()).as("half of them").isFalse();
    gpus.refused("b");
    gpus.refused("b");
    assertThat(gpus.unreachable()).isTrue();
    gpus.mapped("b");
    assertThat(gpus.unreachable()).as("its GPU was full").isFalse();
  }

  @Test
  void aNodeStaysAsItIsWhenThoseWhoShowedItAreGone() {
    gpus.refused("a");
    gpus.lost("a");
    assertThat(gpus.unreachable()).isTrue();
    gpus.mapped("b");
    assertThat(gpus.unreachable()).isFalse();
  }
}
