package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** An adapter answers gets by itself: they end while the owner's process is stopped. */
@Timeout(120)
class OneSidedGetTest {
  private static final int SECONDS = 20;

  @BeforeEach
  void wantsAnAdapter() {
    assumeTrue(RdmaDevices.any(), "no RDMA adapter here");
  }

  @ParameterizedTest
  @ValueSource(ints = {8, 4 << 10, 1 << 20, MemoryOwner.BYTES})
  void getsEndWhileTheOwnerIsStopped(final int bytes) throws Exception {
    try (UcxEngine reader = TestUcx.start();
        MemoryOwner owner = MemoryOwner.start();
        UcxEndpoint endpoint = owner.connect(reader)) {
      get(owner, endpoint, 8); // Connects.
      owner.stop();
      get(owner, endpoint, bytes);
    }
  }

  private static void get(final MemoryOwner owner, final UcxEndpoint endpoint, final int bytes)
      throws Exception {
    final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(bytes));
    final CompletableFuture<String> end = new CompletableFuture<>();
    owner.get(endpoint, to, bytes, failure -> end.complete(failure == null ? "" : failure));
    assertThat(end.get(SECONDS, TimeUnit.SECONDS)).isEmpty();
    for (int i = 0; i < bytes; i++) {
      assertThat(to.getByte(i)).isEqualTo(MemoryOwner.at(i));
    }
  }
}
