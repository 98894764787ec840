package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Links whose watch fails, such as for lack of memory. */
final class PeerWatchTest extends SegmentServerFixture {
  @Test
  void ifTheWatchFailsAllLinksEndAndLaterOnesAreWatched() throws Exception {
    final SegmentServer second =
        new SegmentServer(
            folder,
            "second",
            SegmentTable.SECRET,
            new SegmentTable(),
            SegmentServer.Limits.DEFAULT);
    second.start();
    final CountDownLatch othersEnd = new CountDownLatch(1);
    final PeerLink other = link();
    other.onClosed(othersEnd::countDown);
    final PeerLink failing =
        PeerLink.connect(second.socket(), "client", "second", SegmentTable.SECRET, LIMIT);
    failing.onClosed(
        () -> {
          throw new OutOfMemoryError("wanted by the test");
        });
    second.close();
    assertThat(othersEnd.await(60, TimeUnit.SECONDS)).isTrue();
    assertThat(failing.alive()).isFalse();
    final CountDownLatch ended = new CountDownLatch(1);
    try (PeerLink later = link()) {
      later.onClosed(ended::countDown);
      assertThat(later.alive()).isTrue();
      server.close();
      assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
    }
  }
}
