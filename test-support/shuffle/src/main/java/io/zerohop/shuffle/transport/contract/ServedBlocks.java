package io.zerohop.shuffle.transport.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;

/**
 * A fallback in one process, as Spark's block transfer is one between processes: what an owner
 * holds is copied by threads of its own, what it does not hold fails, and an owner that has ended
 * answers nobody.
 */
public final class ServedBlocks implements FallbackTransport, AutoCloseable {
  private final Map<String, ShuffleNode> owners = new ConcurrentHashMap<>();
  private final ExecutorService threads = Executors.newFixedThreadPool(2);
  private final AtomicInteger held = new AtomicInteger();

  /** Shared by those that copy from an owner: it leaves behind them. */
  private final ReadWriteLock copying = new ReentrantReadWriteLock();

  /** From now on blocks of this executor are served. */
  public void serve(final String executorId, final ShuffleNode owner) {
    owners.put(executorId, owner);
  }

  /** The executor ends; what is being copied from it is waited for. */
  public void leave(final String executorId) {
    copying.writeLock().lock();
    try {
      owners.remove(executorId);
    } finally {
      copying.writeLock().unlock();
    }
  }

  @Override
  public boolean answers(final BlockSource source, final Duration limit) {
    return owners.containsKey(source.executorId());
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    for (final Block block : blocks) {
      try {
        threads.execute(() -> serve(source, block, sink));
      } catch (final RejectedExecutionException e) {
        sink.failed(block, e);
      }
    }
  }

  private void serve(final BlockSource source, final Block block, final Sink sink) {
    final byte[] bytes;
    copying.readLock().lock();
    try {
      bytes = copy(source, block);
    } catch (final IOException | RuntimeException e) {
      sink.failed(block, e);
      return;
    } finally {
      copying.readLock().unlock();
    }
    held.incrementAndGet();
    sink.arrived(block, new Copy(bytes));
  }

  private byte[] copy(final BlockSource source, final Block block) throws IOException {
    final ShuffleNode owner = owners.get(source.executorId());
    if (owner == null) {
      throw new IOException("nobody serves blocks of executor " + source.executorId());
    }
    try (MapOutputLease lease = owner.lease(block.shuffleId(), block.mapId())) {
      if (lease == null) {
        throw new IOException(block + " is not held");
      }
      try (InputStream in = lease.stream(block.partition())) {
        return in.readAllBytes();
      }
    }
  }

  private final class Copy implements Payload {
    private final byte[] bytes;
    private boolean released;

    Copy(final byte[] bytes) {
      this.bytes = bytes;
    }

    @Override
    public long bytes() {
      return bytes.length;
    }

    @Override
    public synchronized InputStream open(final BooleanSupplier ended) throws IOException {
      if (released) {
        throw new IOException("opened after it was released");
      }
      return new ByteArrayInputStream(bytes);
    }

    @Override
    public synchronized void release() {
      assertThat(released).as("released once").isFalse();
      released = true;
      held.decrementAndGet();
    }
  }

  /** Payloads that were handed out are given back, those that are on their way included. */
  public void assertAllReleased() {
    TestNodes.eventually("all payloads are released", () -> held.get() == 0);
  }

  @Override
  public void close() {
    threads.shutdownNow();
  }
}
