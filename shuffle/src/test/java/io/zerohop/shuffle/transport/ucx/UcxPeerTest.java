package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class UcxPeerTest {
  private final Link link = new Link();
  private final UcxPeer peer = new UcxPeer("7", link, Clock.system());

  /** A link that does nothing but end. */
  private static final class Link implements ControlLink {
    private boolean closed;

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      return new CompletableFuture<>();
    }

    @Override
    public boolean alive() {
      return !closed;
    }

    @Override
    public void onClosed(final Runnable action) {}

    @Override
    public void close() {
      closed = true;
    }
  }

  private static UcxPeer.SegmentKey key(final long id, final long address) {
    return new UcxPeer.SegmentKey(id, address, new byte[1]);
  }

  @Test
  void anOwnersNewSegmentsTakeThePlaceOfThoseThatAreGone() {
    for (long generation = 1; generation <= 1000; generation++) {
      for (int slot = 0; slot < 3; slot++) {
        final long id = SegmentIds.id(generation, Tier.HOST, slot);
        assertThat(peer.key(id)).isNull();
        peer.key(key(id, generation));
        assertThat(peer.key(id).address()).isEqualTo(generation);
      }
    }
    assertThat(peer.keys()).isEqualTo(3);
    assertThat(peer.key(SegmentIds.id(999, Tier.HOST, 0))).isNull();
  }

  @Test
  void anAnswerThatComesLateTakesNoPlace() {
    final long young = SegmentIds.id(8, Tier.DEVICE, 1);
    peer.key(key(young, 8));
    peer.key(key(SegmentIds.id(7, Tier.HOST, 1), 7));
    assertThat(peer.key(young).address()).isEqualTo(8);
  }

  @Test
  void whoIsReadOrWasReadJustNowStaysConnected() {
    assertThat(peer.check(Config.defaults())).isTrue();
    assertThat(peer.alive()).isTrue();
    assertThat(peer.check(Config.defaults().with("ucx.idle", Duration.ofNanos(-1)))).isFalse();
    assertThat(peer.alive()).isFalse();
    assertThat(link.alive()).isFalse();
  }
}
