package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.transport.ucx.engine.LoopbackTest;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Gets from an owner that dies end when the reader gives it up, which it does when the connection
 * to the owner's control port ends or says nothing: their memory is not held for as long as UCX or
 * the adapter would go on trying.
 */
@Timeout(120)
@SuppressWarnings("try") // A flight is there to be closed.
class OwnerDeathTest {
  /** The default of spark.zerohop.request.timeout. */
  private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(10);

  private static final int GETS = 8;

  private final List<AtomicInteger> ends = new ArrayList<>();
  private final List<UnsafeBuffer> buffers = new ArrayList<>();

  /** What is done to the owner. */
  private interface Fault {
    void strike(MemoryOwner owner) throws Exception;
  }

  @Test
  void getsFromAKilledOwnerEndWhenItIsGivenUp() throws Exception {
    getsEndAfter(MemoryOwner::kill, true);
  }

  @Test
  void getsFromAStoppedOwnerEndWhenItIsGivenUp() throws Exception {
    getsEndAfter(MemoryOwner::stop, true);
  }

  /** Where UCX is still connecting, to somebody who does not answer any more. */
  @Test
  void getsFromAnOwnerThatWasNeverReachedEndWhenItIsGivenUp() throws Exception {
    getsEndAfter(MemoryOwner::kill, false);
  }

  private void getsEndAfter(final Fault fault, final boolean connected) throws Exception {
    final TestClock clock = TestClock.running();
    try (UcxEngine reader = TestUcx.start(clock);
        MemoryOwner owner = MemoryOwner.start()) {
      final UcxEndpoint endpoint = owner.connect(reader);
      if (connected) {
        get(owner, endpoint, 8);
        TestNodes.eventually("it is connected", () -> ends.get(0).get() == 1);
      } else {
        fault.strike(owner);
      }
      for (int i = 0; i < GETS; i++) {
        get(owner, endpoint, MemoryOwner.BYTES);
      }
      if (connected) {
        fault.strike(owner);
      }
      endpoint.close();
      final long begin = System.nanoTime();
      try (TestClock.Flight flight = clock.fly()) {
        while (reader.pending() > 0 && System.nanoTime() - begin < LIMIT_NANOS) {
          Thread.sleep(1);
        }
      }
      assertThat(reader.pending()).as("gets under way").isZero();
      // Who asked is told a moment later.
      TestNodes.eventually("all were told", () -> ends.stream().noneMatch(end -> end.get() == 0));
      assertThat(ends).allSatisfy(end -> assertThat(end).hasValue(1));
      LoopbackTest.run(reader); // It works for others.
    }
    java.lang.ref.Reference.reachabilityFence(buffers);
  }

  private void get(final MemoryOwner owner, final UcxEndpoint endpoint, final int bytes) {
    final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(bytes));
    final AtomicInteger end = new AtomicInteger();
    buffers.add(to);
    ends.add(end);
    owner.get(endpoint, to, bytes, failure -> end.incrementAndGet());
  }
}
