package io.zerohop.shuffle.transport.ucx.reader;

import io.zerohop.shuffle.transport.remote.carrier.Completion;
import io.zerohop.shuffle.transport.remote.memory.Slabs.Slab;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.memory.GpuSlabs;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Gets from one peer, with a limit on concurrent ones. Any thread may be the one that starts the
 * next.
 */
public final class Gets {
  private static final int AT_ONCE = 16;

  private final UcxEndpoint endpoint;
  private final Deque<Get> waiting = new ArrayDeque<>();
  private int underWay;

  /**
   * One of them.
   *
   * @param slab held until the get has ended
   * @param wanted asked before it is started; if not it ends with a failure
   */
  public record Get(
      byte[] key,
      long remoteAddress,
      Slab slab,
      long offset,
      long bytes,
      BooleanSupplier wanted,
      Completion done) {}

  Gets(final UcxEndpoint endpoint) {
    this.endpoint = endpoint;
  }

  public void submit(final Get get) {
    get.slab().retain();
    synchronized (this) {
      waiting.add(get);
    }
    startMore();
  }

  private void startMore() {
    for (Get get = next(); get != null; get = next()) {
      final Get started = get;
      if (!started.wanted().getAsBoolean()) {
        finish(started, "the transfer was cancelled");
        continue;
      }
      endpoint.get(
          get.key(),
          get.remoteAddress(),
          get.slab().address() + get.offset(),
          get.bytes(),
          GpuSlabs.registration(get.slab()),
          failure -> ended(started, failure));
    }
  }

  private synchronized @Nullable Get next() {
    if (underWay == AT_ONCE || waiting.isEmpty()) {
      return null;
    }
    underWay++;
    return waiting.poll();
  }

  private void ended(final Get get, final @Nullable String failure) {
    finish(get, failure);
    startMore();
  }

  private void finish(final Get get, final @Nullable String failure) {
    synchronized (this) {
      underWay--;
    }
    get.slab().release();
    get.done().done(failure);
  }
}
