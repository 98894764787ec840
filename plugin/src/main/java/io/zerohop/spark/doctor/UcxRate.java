package io.zerohop.spark.doctor;

import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.carrier.Arrivals;
import io.zerohop.shuffle.transport.ucx.engine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxStarter;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Gets or messages from this process to itself, as many at a time as a reader has under way. Which
 * of them the engine decides.
 */
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
   * @param oneSided whether executors here take gets
   * @throws UcxException if UCX cannot be used, or a request fails
   */
  static double measure(final UcxStarter starter, final boolean oneSided) {
    final UcxEngine engine = starter.start(oneSided, () -> {});
    final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    final Requests requests = new Requests(from.addressOffset(), to.addressOffset());
    try (engine) {
      if (!oneSided) {
        engine.receiver(requests);
      }
      return measure(engine, requests, oneSided ? from : null);
    }
  }

  private static double measure(
      final UcxEngine engine, final Requests requests, final UnsafeBuffer got) {
    try (UcxEndpoint self = engine.connect(engine.address(), lost -> {});
        UcxMemory memory =
            got == null ? null : engine.register(Tier.HOST, got.addressOffset(), BYTES)) {
      long least = Long.MAX_VALUE;
      for (int round = 0; round < ROUNDS; round++) {
        final long begin = System.nanoTime();
        requests.run(self, memory);
        least = Math.min(least, System.nanoTime() - begin);
      }
      return (double) BYTES / least;
    }
  }

  /** Those of one round after the other. Used by one thread, and called by the engine's. */
  private static final class Requests implements Arrivals {
    private final long from;
    private final long to;
    private volatile List<CompletableFuture<Void>> ends = List.of();

    Requests(final long from, final long to) {
      this.from = from;
      this.to = to;
    }

    /**
     * @param memory what is got; null to send it
     */
    void run(final UcxEndpoint self, final UcxMemory memory) {
      ends =
          Stream.generate(() -> new CompletableFuture<Void>())
              .limit(memory == null ? 2 * REQUESTS : REQUESTS)
              .toList();
      for (int i = 0; i < REQUESTS; i++) {
        final int request = i;
        final long offset = (long) i * REQUEST_BYTES;
        if (memory != null) {
          self.get(
              memory.key(),
              from + offset,
              to + offset,
              REQUEST_BYTES,
              null,
              failure -> ended(request, failure));
        } else {
          self.send(
              request,
              0,
              from + offset,
              REQUEST_BYTES,
              failure -> ended(REQUESTS + request, failure));
        }
      }
      await();
    }

    private void ended(final int request, final String failure) {
      if (failure == null) {
        ends.get(request).complete(null);
      } else {
        ends.get(request)
            .completeExceptionally(new UcxException("a request failed: " + failure, null));
      }
    }

    @Override
    public long arriving(final long id, final long offset, final long bytes) {
      final boolean expected = id >= 0 && id < REQUESTS && offset == 0 && bytes == REQUEST_BYTES;
      return expected ? to + id * REQUEST_BYTES : 0;
    }

    @Override
    public void arrived(final long id, final long offset, final long bytes, final String failure) {
      ended((int) id, failure);
    }

    private void await() {
      try {
        CompletableFuture.allOf(ends.toArray(CompletableFuture[]::new))
            .get(SECONDS, TimeUnit.SECONDS);
      } catch (final ExecutionException | TimeoutException e) {
        throw new UcxException("requests did not end within " + SECONDS + " s: " + e, e);
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new UcxException("interrupted while UCX was measured", e);
      }
    }
  }
}
