package io.zerohop.shuffle.transport;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.Transport.Payload;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Shares one transfer among the readers of an executor that request the same block at the same
 * time. An example is one side of a skewed join, which is read once for each part of the other. A
 * reader that requests a block in transit joins; one that requests it after it has arrived starts a
 * new transfer.
 *
 * <p>A transport whose requests may wait for a connection is asked by threads of this class, so
 * that a reader that is interrupted or killed neither fails the others nor is waited for; where the
 * system has no thread, the reader asks. No lock is held while the transport or a sink is called.
 * Thread safe.
 *
 * <p>Each reader keeps the receive buffers that it reserved, although the bytes are there once: so
 * the budget holds whoever goes first, at the price of some that is reserved and not used.
 */
public final class SharedTransfers implements FallbackTransport, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SharedTransfers.class);
  private static final Duration IDLE = Duration.ofSeconds(30);
  private static final Duration STOP_LIMIT = Duration.ofSeconds(5);

  private final FallbackTransport transport;
  private final Predicate<BlockSource> isShared;
  private final Duration patience;
  private final Clock clock;
  private final Executor asking;

  /** The same if this owns its threads; absent if readers ask. */
  private final @Nullable ThreadPoolExecutor threads;

  private final LongAdder joined = new LongAdder();

  /** Those that newcomers may join. */
  private final Map<Key, Transfer> joinable = new ConcurrentHashMap<>();

  /** Those that nobody has reported yet, overdue ones included. */
  private final Set<Transfer> underWay = ConcurrentHashMap.newKeySet();

  private volatile boolean closed;

  /**
   * Sharing transfers of another transport, which the caller keeps.
   *
   * @param transport its payloads' streams are independent of one another
   * @param isShared which owners' blocks are worth it; others' are asked for by the reader itself
   * @param threads the most that ask at the same time, which may take as long as a connection does;
   *     more requests wait, and there are no more than readers have receive buffers for
   * @param patience after which nobody joins a transfer any more, so that one lost answer does not
   *     keep all who come later from the block
   * @param clock by which patience is measured
   */
  public SharedTransfers(
      final FallbackTransport transport,
      final Predicate<BlockSource> isShared,
      final int threads,
      final Duration patience,
      final Clock clock) {
    this.transport = transport;
    this.isShared = isShared;
    this.patience = patience;
    this.clock = clock;
    this.threads = Threads.pool("asks", threads, IDLE);
    asking = this.threads;
  }

  /**
   * Shares all transfers of a transport whose requests do not wait: readers make them.
   *
   * @param patience after which nobody joins a transfer any more
   * @param clock by which patience is measured
   */
  public SharedTransfers(final Transport transport, final Duration patience, final Clock clock) {
    this.transport = transport::fetch;
    this.isShared = any -> true;
    this.patience = patience;
    this.clock = clock;
    threads = null;
    asking = Runnable::run;
  }

  @Override
  public boolean answers(final BlockSource source, final Duration limit) {
    return transport.answers(source, limit);
  }

  @Override
  public void ended(final BlockSource source) {
    transport.ended(source);
  }

  private record Key(Object owner, Block block) {}

  /** One block on its way, and who waits for it. Thread safe. */
  private static final class Transfer {
    private final Key key;
    private final long overdue;

    /** Not empty before the end. */
    @GuardedBy("this")
    private final List<Sink> sinks = new ArrayList<>(1);

    @GuardedBy("this")
    private boolean ended;

    Transfer(final Key key, final Sink first, final long overdue) {
      this.key = key;
      this.overdue = overdue;
      sinks.add(first);
    }

    /** Returns false if nobody can join any more. */
    synchronized boolean join(final Sink sink) {
      return !ended && sinks.add(sink);
    }

    /** Returns who is to be told, nobody if that was done before. */
    synchronized List<Sink> end() {
      if (ended) {
        return List.of();
      }
      ended = true;
      return sinks;
    }

    /** Takes out who came first, if others wait as well. */
    synchronized @Nullable Sink takeFirstOfMany() {
      return !ended && sinks.size() > 1 ? sinks.remove(0) : null;
    }
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    if (!isShared.test(source)) {
      transport.fetch(source, blocks, sink);
      return;
    }
    if (closed) {
      throw new IllegalStateException("blocks were requested while the executor shuts down");
    }
    final Map<Block, Transfer> begun = new LinkedHashMap<>(); // Owners read blocks in order.
    for (final Block block : blocks) {
      final Transfer transfer = joinOrBegin(new Key(source.address(), block), sink);
      if (transfer != null) {
        begun.put(block, transfer);
      }
    }
    joined.add(blocks.size() - begun.size());
    if (closed) { // Who closed it may have passed these.
      begun.values().forEach(transfer -> fail(transfer, closing()));
    } else if (!begun.isEmpty()) {
      try {
        asking.execute(() -> ask(source, begun));
      } catch (final RejectedExecutionException e) {
        begun.values().forEach(transfer -> fail(transfer, e)); // The executor ends.
      } catch (final ZerohopException e) {
        LOG.debug("the reader asks itself", e); // There is no thread for it.
        // Nobody else is to depend on this reader.
        begun.values().forEach(transfer -> joinable.remove(transfer.key, transfer));
        ask(source, begun);
      }
    }
  }

  /** Returns a new transfer if the sink could not join one. */
  private @Nullable Transfer joinOrBegin(final Key key, final Sink sink) {
    for (; ; ) {
      final Transfer known = joinable.get(key);
      if (known != null && !clock.isOver(known.overdue) && known.join(sink)) {
        return null;
      }
      final Transfer begun = new Transfer(key, sink, clock.in(patience));
      if (known == null
          ? joinable.putIfAbsent(key, begun) == null
          : joinable.replace(key, known, begun)) {
        underWay.add(begun);
        return begun;
      }
    }
  }

  /** Asks until that works or nobody waits: each time it fails, who came first is told. */
  private void ask(final BlockSource source, final Map<Block, Transfer> begun) {
    List<Block> wanted = List.copyOf(begun.keySet());
    while (!wanted.isEmpty()) {
      try {
        transport.fetch(source, wanted, new Arrivals(begun));
        return;
      } catch (final Throwable e) {
        // Whatever it is, undeclared exceptions of Scala's included: readers would wait for long.
        wanted = wanted.stream().filter(block -> failFirst(of(begun, block), e)).toList();
      }
    }
  }

  private static Transfer of(final Map<Block, Transfer> requested, final Block block) {
    return Objects.requireNonNull(requested.get(block), "a block that was not requested");
  }

  /** Tells the first who waits; returns whether others do. */
  private boolean failFirst(final Transfer transfer, final Throwable cause) {
    final Sink first = transfer.takeFirstOfMany();
    if (first == null) {
      fail(transfer, cause);
      return false;
    }
    tell(transfer.key.block(), first, sink -> sink.failed(transfer.key.block(), cause));
    return true;
  }

  /** Takes a transfer off; returns who is to be told, nobody if that was done before. */
  private List<Sink> end(final Transfer transfer) {
    final List<Sink> sinks = transfer.end();
    joinable.remove(transfer.key, transfer);
    underWay.remove(transfer);
    return sinks;
  }

  /**
   * A sink that fails must not keep others from their blocks.
   *
   * @return whether it was told
   */
  private static boolean tell(final Object what, final Sink sink, final Consumer<Sink> news) {
    try {
      news.accept(sink);
      return true;
    } catch (final Throwable e) {
      ShuffleCode.NEWS_NOT_TAKEN
          .says("a reader failed while it received its blocks")
          .at(String.valueOf(what))
          .warn(LOG, e);
      return false;
    }
  }

  private void fail(final Transfer transfer, final Throwable cause) {
    for (final Sink sink : end(transfer)) {
      tell(transfer.key.block(), sink, reader -> reader.failed(transfer.key.block(), cause));
    }
  }

  /** Hands on what becomes of the blocks of one request. */
  private final class Arrivals implements Sink {
    private final Map<Block, Transfer> requested;

    /**
     * @param requested not changed any more
     */
    Arrivals(final Map<Block, Transfer> requested) {
      this.requested = requested;
    }

    @Override
    public void arrived(final Block block, final Payload payload) {
      final List<Sink> sinks = end(of(requested, block));
      if (sinks.isEmpty()) {
        payload.release(); // Too late, or once more: nobody will read it.
        return;
      }
      final AtomicInteger left = new AtomicInteger(sinks.size());
      for (final Sink sink : sinks) {
        final Payload share = new Share(payload, left);
        if (!tell(block, sink, reader -> reader.arrived(block, share))) {
          share.release();
        }
      }
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      fail(of(requested, block), cause);
    }

    @Override
    public void failed(final Collection<Block> blocks, final Throwable cause) {
      final Map<Sink, List<Block>> told = new LinkedHashMap<>();
      for (final Block block : blocks) {
        for (final Sink sink : end(of(requested, block))) {
          told.computeIfAbsent(sink, first -> new ArrayList<>()).add(block);
        }
      }
      told.forEach((sink, failed) -> tell(failed, sink, reader -> reader.failed(failed, cause)));
    }
  }

  /** Blocks that readers did not ask for themselves, since they were on their way. */
  public long joined() {
    return joined.sum();
  }

  /** Blocks that are on their way. */
  public int open() {
    return underWay.size();
  }

  private static CancellationException closing() {
    return new CancellationException("the executor ends");
  }

  /**
   * Fails what is under way and ends the threads that ask, for which it waits a limited time. What
   * arrives later is released. Idempotent.
   */
  @Override
  public void close() {
    closed = true;
    if (threads != null) {
      threads.shutdownNow();
    }
    underWay.forEach(transfer -> fail(transfer, closing()));
    if (threads != null) {
      Deadline.in(STOP_LIMIT)
          .await(
              threads::isTerminated,
              millis -> threads.awaitTermination(millis, TimeUnit.MILLISECONDS));
    }
  }

  /**
   * One reader's share of a payload, which is released when the last of its shares is. Its streams
   * end with it, though the memory may stay for others, or be given to them. Thread safe.
   */
  private static final class Share implements Payload {
    private final Payload payload;
    private final AtomicInteger left;
    private volatile boolean released;

    /**
     * @param payload each of its streams has a position of its own
     * @param left counts the shares that are not released, this one included
     */
    Share(final Payload payload, final AtomicInteger left) {
      this.payload = payload;
      this.left = left;
    }

    @Override
    public long bytes() {
      return payload.bytes();
    }

    @Override
    public @Nullable ExtentList extents() {
      return payload.extents();
    }

    @Override
    public BlockPath path(final BlockPath asked) {
      return payload.path(asked);
    }

    @Override
    public synchronized InputStream open(final BooleanSupplier ended) throws IOException {
      checkHeld();
      final ExtentList extents = payload.extents();
      return extents == null
          ? new ShareStream(payload.open(ended))
          : extents.stream(0, extents.size(), () -> !released);
    }

    private void checkHeld() throws IOException {
      if (released) {
        throw new IOException("a block is read after it was released");
      }
    }

    /** Idempotent: one that a sink has refused may still be released by it. */
    @Override
    public void release() {
      synchronized (this) {
        if (released) {
          return;
        }
        released = true;
      }
      if (left.decrementAndGet() == 0) {
        payload.release();
      }
    }

    /** Reads under the share's monitor, so that the memory is not given back meanwhile. */
    private final class ShareStream extends FilterInputStream {
      ShareStream(final InputStream in) {
        super(in);
      }

      @Override
      public int read() throws IOException {
        synchronized (Share.this) {
          checkHeld();
          return in.read();
        }
      }

      @Override
      public int read(final byte[] bytes, final int offset, final int length) throws IOException {
        synchronized (Share.this) {
          checkHeld();
          return in.read(bytes, offset, length);
        }
      }

      @Override
      public long skip(final long count) throws IOException {
        synchronized (Share.this) {
          checkHeld();
          return in.skip(count);
        }
      }

      @Override
      public int available() throws IOException {
        synchronized (Share.this) {
          checkHeld();
          return in.available();
        }
      }

      @Override
      public boolean markSupported() {
        return false;
      }
    }
  }
}
