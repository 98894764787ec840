package io.zerohop.shuffle.scale;

import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.carrier.Completion;
import io.zerohop.shuffle.transport.ucx.engine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
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
 * A fabric within this process: gets and messages are copies, made by threads that all engines
 * share. Gets are one-sided, as by an adapter: the owner has no part in them. Thread safe; owns the
 * threads.
 */
final class FakeUcx implements AutoCloseable {
  private static final int THREADS = 2;

  /** As long as UCX's own for TCP and one RDMA port, about. */
  private static final int ADDRESS_BYTES = 200;

  private static final int KEY_BYTES = 60;

  private final ExecutorService threads =
      Executors.newFixedThreadPool(THREADS, task -> Threads.daemon(task, "fake-ucx"));

  private final Map<Long, Engine> engines = new ConcurrentHashMap<>();
  private final Map<Long, Long> registered = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong();

  /** An executor's own, for {@code NodeConfig.Builder#ucx}. */
  Engine engine(final boolean oneSided) {
    final Engine engine = new Engine(next.incrementAndGet(), oneSided);
    engines.put(engine.id, engine);
    return engine;
  }

  @Override
  public void close() {
    threads.shutdownNow();
  }

  /** One executor's UCX, and what it has moved. */
  final class Engine implements UcxEngine {
    private final long id;
    private final boolean oneSided;
    private final AtomicInteger endpoints = new AtomicInteger();
    private final AtomicInteger pending = new AtomicInteger();
    private final AtomicLong events = new AtomicLong();

    /** Bytes that came to this executor, by either way. */
    private final AtomicLong received = new AtomicLong();

    private volatile Arrivals receiver;

    private Engine(final long id, final boolean oneSided) {
      this.id = id;
      this.oneSided = oneSided;
    }

    /** Endpoints that are open. */
    int endpoints() {
      return endpoints.get();
    }

    long receivedBytes() {
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
    public boolean oneSided() {
      return oneSided;
    }

    @Override
    public boolean rdma() {
      return oneSided;
    }

    @Override
    public long events() {
      return events.get();
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
      final Engine to = engines.get(ByteBuffer.wrap(address).getLong());
      if (to == null) {
        throw new UcxException("there is no such worker", null);
      }
      endpoints.incrementAndGet();
      return new Endpoint(this, to);
    }

    @Override
    public void receiver(final Arrivals taker) {
      receiver = taker;
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
    private final Engine to;
    private boolean closed;

    Endpoint(final Engine from, final Engine to) {
      this.from = from;
      this.to = to;
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

    @Override
    public void send(
        final long id,
        final long offset,
        final long address,
        final long bytes,
        final Completion done) {
      run(
          () -> {
            to.events.incrementAndGet();
            final long place = to.receiver.arriving(id, offset, bytes);
            if (place != 0) {
              UnsafeAccess.UNSAFE.copyMemory(address, place, bytes);
              to.received.addAndGet(bytes);
              to.receiver.arrived(id, offset, bytes, null);
            }
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
