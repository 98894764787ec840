package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
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
import java.util.stream.IntStream;
import org.agrona.concurrent.UnsafeBuffer;

/** Measures gets of this process from itself, with as many concurrent ones as a reader has. */
final class UcxRate {
  private static final int REQUESTS = 16;
  private static final int REQUEST_BYTES = 1 << 20;
  private static final int BYTES = REQUESTS * REQUEST_BYTES;
  private static final int ROUNDS = 5;
  private static final long SECONDS = 10;

  private UcxRate() {}

  /**
   * The best of a few rounds, in GB/s.
   *
   * @throws UcxException if UCX cannot be used, or a request fails
   */
  static double measure(final UcxStarter starter) {
    final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    try (UcxEngine engine = starter.start(() -> {});
        UcxEndpoint self = engine.connect(engine.address(), lost -> {});
        UcxMemory memory = engine.register(Tier.HOST, from.addressOffset(), BYTES)) {
      long least = Long.MAX_VALUE;
      for (int round = 0; round < ROUNDS; round++) {
        final long begin = System.nanoTime();
        getAll(self, memory, from.addressOffset(), to.addressOffset());
        least = Math.min(least, System.nanoTime() - begin);
      }
      return (double) BYTES / least;
    }
  }

  private static void getAll(
      final UcxEndpoint self, final UcxMemory memory, final long from, final long to) {
    await(
        IntStream.range(0, REQUESTS)
            .mapToLong(request -> (long) request * REQUEST_BYTES)
            .mapToObj(offset -> get(self, memory, from + offset, to + offset))
            .toArray(CompletableFuture[]::new));
  }

  private static CompletableFuture<Void> get(
      final UcxEndpoint self, final UcxMemory memory, final long from, final long to) {
    final CompletableFuture<Void> end = new CompletableFuture<>();
    self.get(
        memory.key(),
        from,
        to,
        REQUEST_BYTES,
        null,
        failure -> {
          if (failure == null) {
            end.complete(null);
          } else {
            end.completeExceptionally(
                new UcxException(Message.of("a request failed").because(failure), null));
          }
        });
    return end;
  }

  private static void await(final CompletableFuture<?>[] ends) {
    try {
      CompletableFuture.allOf(ends).get(SECONDS, TimeUnit.SECONDS);
    } catch (final ExecutionException | TimeoutException e) {
      throw new UcxException(
          Message.of("requests did not end within " + SECONDS + " s").because(e), e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while UCX was measured", e);
    }
  }
}
