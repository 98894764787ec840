package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.device.Message;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Moves some bytes of its own by UCX, in the way that peers will. Where jucx and libucx are of
 * different kinds everything looks well until the first request, which fails; better here than in a
 * query.
 */
public final class LoopbackTest {
  private static final int BYTES = 4 << 10;
  private static final long SECONDS = 10;

  private final UcxEngine engine;
  private final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
  private final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(BYTES));
  private final CompletableFuture<String> end = new CompletableFuture<>();

  private LoopbackTest(final UcxEngine engine) {
    this.engine = engine;
  }

  /**
   * Runs it.
   *
   * @throws UcxException if bytes do not come, or not the right ones
   */
  public static void run(final UcxEngine engine) {
    new LoopbackTest(engine).run();
  }

  private void run() {
    from.setMemory(0, BYTES, (byte) 0x5a);
    try (UcxEndpoint self = engine.connect(engine.address(), lost -> {})) {
      final String failure = get(self);
      if (!failure.isEmpty() || !from.equals(to)) {
        throw new UcxException(Message.of("a test read failed").because(failure), null);
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

  private void ended(final @Nullable String failure) {
    end.complete(failure == null ? "" : failure);
  }
}
