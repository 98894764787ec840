package io.zerohop.shuffle.transport.contract;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/**
 * Another transport with faults put into it, by chance and the same for the same seed: requests
 * that throw, blocks that fail, come late, never or twice, and streams that break off.
 */
final class FaultyTransport implements FallbackTransport, AutoCloseable {
  private static final int LATEST_MILLIS = 30;

  private final FallbackTransport transport;
  private final Random random;
  private final double rate;
  private final AtomicInteger faults = new AtomicInteger();
  private final ScheduledExecutorService late = Executors.newSingleThreadScheduledExecutor();

  /**
   * Faults in a transport.
   *
   * @param rate how often something happens to a request or a block, 0 for never
   */
  FaultyTransport(final FallbackTransport transport, final long seed, final double rate) {
    this.transport = transport;
    this.random = new Random(seed);
    this.rate = rate;
  }

  private enum Fault {
    NONE,
    FAILS,
    LATE,
    NEVER,
    TWICE,
    BREAKS_OFF
  }

  private synchronized boolean happens() {
    final boolean happens = random.nextDouble() < rate;
    faults.addAndGet(happens ? 1 : 0);
    return happens;
  }

  private synchronized Fault fault() {
    return happens() ? Fault.values()[1 + random.nextInt(Fault.values().length - 1)] : Fault.NONE;
  }

  /** What has happened. */
  int faults() {
    return faults.get();
  }

  @Override
  public boolean answers(final BlockSource source, final Duration limit) {
    return transport.answers(source, limit);
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    if (happens()) {
      throw new IllegalStateException("a test wants this request to throw");
    }
    transport.fetch(source, blocks, new FaultySink(sink));
  }

  private final class FaultySink implements Sink {
    private final Sink sink;

    FaultySink(final Sink sink) {
      this.sink = sink;
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      sink.failed(block, cause);
    }

    @Override
    public void arrived(final Block block, final Payload payload) {
      switch (fault()) {
        case NONE -> sink.arrived(block, payload);
        case FAILS -> {
          payload.release();
          sink.failed(block, new IOException("a test wants this block to fail"));
        }
        case LATE -> arriveLate(block, payload);
        case NEVER -> payload.release();
        case TWICE -> {
          sink.arrived(block, payload);
          sink.failed(block, new IOException("a test wants this block to be reported twice"));
        }
        case BREAKS_OFF -> sink.arrived(block, new Broken(payload));
        default -> throw new AssertionError();
      }
    }

    private void arriveLate(final Block block, final Payload payload) {
      final int millis;
      synchronized (FaultyTransport.this) {
        millis = random.nextInt(LATEST_MILLIS);
      }
      try {
        final Future<?> arrival =
            late.schedule(() -> sink.arrived(block, payload), millis, TimeUnit.MILLISECONDS);
        // An executor that ends meanwhile cancels what it has just taken, and throws nothing.
        if (arrival.isCancelled()) {
          payload.release();
        }
      } catch (final RejectedExecutionException e) {
        payload.release();
      }
    }
  }

  /** A payload whose bytes cannot all be read. */
  private record Broken(Payload payload) implements Payload {
    @Override
    public long bytes() {
      return payload.bytes();
    }

    @Override
    public InputStream open(final BooleanSupplier ended) throws IOException {
      return new FilterInputStream(payload.open(ended)) {
        @Override
        public int read(final byte[] bytes, final int offset, final int length) throws IOException {
          throw new IOException("a test wants this stream to break off");
        }
      };
    }

    @Override
    public void release() {
      payload.release();
    }
  }

  /** Waits for what is late, which is not long. */
  @Override
  public void close() {
    late.shutdown();
    try {
      if (!late.awaitTermination(30, TimeUnit.SECONDS)) {
        throw new AssertionError("blocks that are late do not arrive");
      }
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
