package io.zerohop.shuffle.transport.ucx.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import java.util.function.Consumer;
import org.agrona.UnsafeAccess;
import org.junit.jupiter.api.Test;

/**
 * A jucx that does not fit libucx starts, connects and registers memory; its first request shows
 * what it is.
 */
class MismatchedBindingTest {

  @Test
  void bytesThatComePass() {
    final Engine engine = new Engine(true, null);
    LoopbackTest.run(engine);
    assertThat(engine.requests).isEqualTo(1);
    assertThat(engine.open).isZero();
  }

  @Test
  void aRequestThatFailsIsFoundOut() {
    final Engine engine = new Engine(false, "Unsupported operation");
    assertRefused(engine, "Unsupported operation");
  }

  @Test
  void aRequestThatEndsWellWithoutItsBytesIsFoundOut() {
    assertRefused(new Engine(false, null), "a test read failed");
  }

  @Test
  void anInterruptEndsTheWaitForARequestThatNeverEnds() {
    final Engine engine = new Engine(false, Engine.NEVER);
    Thread.currentThread().interrupt();
    assertRefused(engine, "interrupted");
    assertThat(Thread.interrupted()).isTrue();
  }

  private static void assertRefused(final Engine engine, final String why) {
    assertThatThrownBy(() -> LoopbackTest.run(engine))
        .isInstanceOfSatisfying(
            UcxException.class, e -> assertThat(e.category()).isEqualTo(Category.FALLBACK))
        .hasMessageContaining(why);
    assertThat(engine.open).isZero();
  }

  /** Connects to itself alone, and does with each request what it is told to. */
  private static final class Engine implements UcxEngine {
    private static final String NEVER = "never";

    private final boolean moves;
    private final String failure;
    private int requests;

    /** Endpoints and registrations. */
    private int open;

    Engine(final boolean moves, final String failure) {
      this.moves = moves;
      this.failure = failure;
    }

    private void move(
        final long from, final long to, final long bytes, final Consumer<String> ended) {
      requests++;
      if (moves) {
        UnsafeAccess.UNSAFE.copyMemory(from, to, bytes);
      }
      if (!NEVER.equals(failure)) {
        ended.accept(failure);
      }
    }

    @Override
    public UcxMemory register(final Tier kind, final long address, final long bytes) {
      open++;
      return new UcxMemory() {
        @Override
        public byte[] key() {
          return new byte[] {1};
        }

        @Override
        public void close() {
          open--;
        }
      };
    }

    @Override
    public UcxEndpoint connect(final byte[] address, final Consumer<String> onFailure) {
      open++;
      return new UcxEndpoint() {
        @Override
        public void get(
            final byte[] key,
            final long remoteAddress,
            final long localAddress,
            final long bytes,
            final UcxMemory gpu,
            final Completion done) {
          move(remoteAddress, localAddress, bytes, done::done);
        }

        @Override
        public void close() {
          open--;
        }
      };
    }

    @Override
    public boolean rdma() {
      return false;
    }

    @Override
    public long events() {
      return 0;
    }

    @Override
    public byte[] address() {
      return new byte[] {1};
    }

    @Override
    public String describe() {
      return "of another kind";
    }

    @Override
    public boolean reachesGpuMemory() {
      return false;
    }

    @Override
    public int pending() {
      return 0;
    }

    @Override
    public boolean end() {
      return true;
    }
  }
}
