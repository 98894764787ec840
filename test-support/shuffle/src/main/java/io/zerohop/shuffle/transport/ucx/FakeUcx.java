package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.agrona.UnsafeAccess;

/**
 * A fabric within this process: gets are copies, made by threads that all engines share. They are
 * one-sided, as by an adapter: the owner has no part in them. Thread safe; owns the threads.
 */
public final class FakeUcx implements AutoCloseable {
  private static final int THREADS = 2;

  /** As long as UCX's own for TCP and one RDMA port, about. */
  private static final int ADDRESS_BYTES = 200;

  private static final int KEY_BYTES = 60;

  private final ExecutorService threads =
      Executors.newFixedThreadPool(THREADS, task -> Threads.daemon(task, "fake-ucx"));

  private final Map<Long, Engine> engines = new ConcurrentHashMap<>();
  private final Map<Long, Long> registered = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong();

  /** An executor's own, for {@code ShuffleNode.Setup#ucx}. */
  public Engine engine() {
    final Engine engine = new Engine(next.incrementAndGet());
    engines.put(engine.id, engine);
    return engine;
  }

  @Override
  public void close() {
    threads.shutdownNow();
  }

  /** One executor's UCX, and what it has moved. */
  public final class Engine implements UcxEngine {
    private final long id;
    private final AtomicInteger endpoints = new AtomicInteger();
    private final AtomicInteger pending = new AtomicInteger();

    /** Bytes that came to this executor. */
    private final AtomicLong received = new AtomicLong();

    private Engine(final long id) {
      this.id = id;
    }

    /** Endpoints that are open. */
    public int endpoints() {
      return endpoints.get();
    }

    public long receivedBytes() {
      return received.get();
    }

    @Override
    public String describe() {
      return "played within a process";
    }

    @Override
    public boolean reachesGpuMemory() {
      return false;
    }

    @Override
    public boolean rdma() {
      return true;
    }

    @Override
    public long events() {
      return 0;
    }

    @Override
    public byte[] address() {
      return ByteBuffer.allocate(ADDRESS_BYTES).putLong(id).array();
    }

    @Override
    public UcxMemory register(final Tier kind, final long address, final long bytes) {
      final long key = next.incrementAndGet();
      registered.put(key, address);
      final byte[] encoded = ByteBuffer.allocate(KEY_BYTES).putLong(key).array();
      return new UcxMemory() {
        @Override
        public byte[] key() {
          return encoded;
        }

        @Override
        public void close() {
          registered.remove(key);
        }
      };
    }

    @Override
    public UcxEndpoint connect(final byte[] address, final Consumer<String> onFailure) {
      if (!engines.containsKey(ByteBuffer.wrap(address).getLong())) {
        throw new UcxException("there is no such worker", null);
      }
      endpoints.incrementAndGet();
      return new Endpoint(this);
    }

    @Override
    public int pending() {
      return pending.get();
    }

    @Override
    public boolean end() {
      engines.remove(id);
      return true;
    }
  }

  private final class Endpoint implements UcxEndpoint {
    private final Engine from;
    private boolean closed;

    Endpoint(final Engine from) {
      this.from = from;
    }

    @Override
    public void get(
        final byte[] key,
        final long remoteAddress,
        final long localAddress,
        final long bytes,
        final UcxMemory gpu,
        final Completion done) {
      run(
          () -> {
            if (!registered.containsKey(ByteBuffer.wrap(key).getLong())) {
              return "the key is not known";
            }
            UnsafeAccess.UNSAFE.copyMemory(remoteAddress, localAddress, bytes);
            from.received.addAndGet(bytes);
            return null;
          },
          done);
    }

    /** What it returns is why it has failed. */
    private interface Step {
      String run();
    }

    private void run(final Step step, final Completion done) {
      from.pending.incrementAndGet();
      threads.execute(
          () -> {
            final String failure = isClosed() ? "the endpoint is closed" : step.run();
            from.pending.decrementAndGet();
            done.done(failure);
          });
    }

    private synchronized boolean isClosed() {
      return closed;
    }

    @Override
    public synchronized void close() {
      if (!closed) {
        closed = true;
        from.endpoints.decrementAndGet();
      }
    }
  }
}
