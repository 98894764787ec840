package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.carrier.Arrivals;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Moves some bytes of its own by UCX, in the way that peers will. Where jucx and libucx are of
 * different kinds everything looks well until the first request, which fails; better here than in a
 * query.
 */
public final class LoopbackTest {
  private static final int BYTES = 4 << 10;
  private static final long SECONDS = 10;
  private static final long MESSAGE = 1;

  private final UcxEngine engine;
  private final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
  private final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
  private final CompletableFuture<String> end = new CompletableFuture<>();

  private LoopbackTest(final UcxEngine engine) {
    this.engine = engine;
  }

  /**
   * Runs it. Without gets it takes the engine's messages meanwhile.
   *
   * @throws UcxException if bytes do not come, or not the right ones
   */
  public static void run(final UcxEngine engine) {
    new LoopbackTest(engine).run();
  }

  private void run() {
    from.setMemory(0, BYTES, (byte) 0x5a);
    try (UcxEndpoint self = engine.connect(engine.address(), lost -> {})) {
      final String failure = engine.oneSided() ? get(self) : send(self);
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

  private String get(final UcxEndpoint self)
      throws ExecutionException, TimeoutException, InterruptedException {
    try (UcxMemory memory = engine.register(Tier.HOST, from.addressOffset(), BYTES)) {
      self.get(
          memory.key(),
          from.addressOffset(),
          to.addressOffset(),
          BYTES,
          null,
          failure -> ended(failure));
      return end.get(SECONDS, TimeUnit.SECONDS);
    }
  }

  private String send(final UcxEndpoint self)
      throws ExecutionException, TimeoutException, InterruptedException {
    final CompletableFuture<Void> sent = new CompletableFuture<>();
    engine.receiver(
        new Arrivals() {
          @Override
          public long arriving(final long id, final long offset, final long bytes) {
            return id == MESSAGE && bytes == BYTES ? to.addressOffset() : 0;
          }

          @Override
          public void arrived(
              final long id, final long offset, final long bytes, final String failure) {
            ended(failure);
          }
        });
    self.send(
        MESSAGE,
        0,
        from.addressOffset(),
        BYTES,
        failure -> {
          sent.complete(null);
          if (failure != null) {
            ended(failure);
          }
        });
    sent.get(SECONDS, TimeUnit.SECONDS);
    return end.get(SECONDS, TimeUnit.SECONDS);
  }

  private void ended(final String failure) {
    end.complete(failure == null ? "" : failure);
  }
}
