package io.zerohop.spark.doctor;

import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxStarter;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.agrona.concurrent.UnsafeBuffer;

/** Gets from this process to itself, as many at a time as a reader has under way. */
final class UcxRate {
  private static final int GETS = 16;
  private static final int GET_BYTES = 1 << 20;
  private static final int BYTES = GETS * GET_BYTES;
  private static final int ROUNDS = 5;
  private static final long SECONDS = 10;

  private UcxRate() {}

  /**
   * The best of a few rounds, in GB/s.
   *
   * @throws UcxException if UCX cannot be used, or a get fails
   */
  static double measure(final UcxStarter starter) {
    final UcxEngine engine = starter.start(true, () -> {});
    final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    try (engine;
        UcxEndpoint self = engine.connect(engine.address(), lost -> {});
        UcxMemory memory = engine.register(Tier.HOST, from.addressOffset(), BYTES)) {
      long least = Long.MAX_VALUE;
      for (int round = 0; round < ROUNDS; round++) {
        final long begin = System.nanoTime();
        get(self, memory, from, to);
        least = Math.min(least, System.nanoTime() - begin);
      }
      return (double) BYTES / least;
    }
  }

  private static void get(
      final UcxEndpoint self,
      final UcxMemory memory,
      final UnsafeBuffer from,
      final UnsafeBuffer to) {
    final CompletableFuture<?>[] ends = new CompletableFuture<?>[GETS];
    for (int i = 0; i < GETS; i++) {
      final CompletableFuture<Void> end = new CompletableFuture<>();
      final long offset = (long) i * GET_BYTES;
      ends[i] = end;
      self.get(
          memory.key(),
          from.addressOffset() + offset,
          to.addressOffset() + offset,
          GET_BYTES,
          null,
          failure -> {
            if (failure == null) {
              end.complete(null);
            } else {
              end.completeExceptionally(new UcxException("a get failed: " + failure, null));
            }
          });
    }
    try {
      CompletableFuture.allOf(ends).get(SECONDS, TimeUnit.SECONDS);
    } catch (final ExecutionException | TimeoutException e) {
      throw new UcxException("gets did not end within " + SECONDS + " s: " + e, e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while UCX was measured", e);
    }
  }
}
