package io.zerohop.shuffle.transport.contract;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.time.Duration;

/** The same, by transfers that readers share. */
class SharedFallbackPathTest extends FallbackPathTest {
  private SharedTransfers shared;

  @Override
  protected FallbackTransport startFallback() {
    shared = new SharedTransfers(served, source -> true, 2, Duration.ofSeconds(30), Clock.system());
    return shared;
  }

  @Override
  protected void endFallback() {
    TestNodes.eventually("all transfers have ended", () -> shared.open() == 0);
    shared.close();
  }
}
