package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.pool.Tier;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Reads some bytes of its own by UCX. Where jucx and libucx are of different kinds everything looks
 * well until the first request, which fails; better here than in a query.
 */
final class LoopbackTest {
  private static final int BYTES = 4 << 10;
  private static final long SECONDS = 10;

  private LoopbackTest() {}

  /**
   * Runs it.
   *
   * @throws UcxException if bytes do not come, or not the right ones
   */
  static void run(final UcxEngine engine) {
    final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
    from.setMemory(0, BYTES, (byte) 0x5a);
    final CompletableFuture<String> end = new CompletableFuture<>();
    try (UcxMemory memory = engine.register(Tier.HOST, from.addressOffset(), BYTES);
        UcxEndpoint self = engine.connect(engine.address(), lost -> {})) {
      self.get(
          memory.key(),
          from.addressOffset(),
          to.addressOffset(),
          BYTES,
          null,
          failure -> end.complete(failure == null ? "" : failure));
      final String failure = end.get(SECONDS, TimeUnit.SECONDS);
      if (!failure.isEmpty() || !from.equals(to)) {
        throw new UcxException("a test read failed: " + failure, null);
      }
    } catch (final ExecutionException | TimeoutException e) {
      throw new UcxException("a test read did not end within " + SECONDS + " s", e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while UCX was tested", e);
    }
  }
}
