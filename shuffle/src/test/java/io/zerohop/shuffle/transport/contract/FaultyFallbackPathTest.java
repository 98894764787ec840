package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.transport.Transport.FallbackTransport;

/** What puts faults into a transport passes the contract while it puts none into it. */
class FaultyFallbackPathTest extends FallbackPathTest {
  private FaultyTransport faulty;

  @Override
  protected FallbackTransport startFallback() {
    faulty = new FaultyTransport(served, 1, 0);
    return faulty;
  }

  @Override
  protected void endFallback() {
    faulty.close();
  }
}
