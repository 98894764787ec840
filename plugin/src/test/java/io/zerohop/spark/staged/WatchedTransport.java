package io.zerohop.spark.staged;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/**
 * Remembers what another transport is asked for and hands out, to find what is not reported once,
 * or not given back. Thread safe.
 */
final class WatchedTransport implements FallbackTransport {
  private final FallbackTransport transport;
  private final AtomicInteger asked = new AtomicInteger();
  private final AtomicInteger reported = new AtomicInteger();
  private final Queue<Watched> payloads = new ConcurrentLinkedQueue<>();

  WatchedTransport(final FallbackTransport transport) {
    this.transport = transport;
  }

  @Override
  public boolean answers(final BlockSource source, final Duration limit) {
    return transport.answers(source, limit);
  }

  @Override
  public void ended(final BlockSource source) {
    transport.ended(source);
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    asked.addAndGet(blocks.size());
    transport.fetch(
        source,
        blocks,
        new Sink() {
          @Override
          public void arrived(final Block block, final Payload payload) {
            final Watched watched = new Watched(payload);
            payloads.add(watched);
            reported.incrementAndGet();
            sink.arrived(block, watched);
          }

          @Override
          public void failed(final Block block, final Throwable cause) {
            reported.incrementAndGet();
            sink.failed(block, cause);
          }
        });
  }

  private static final class Watched implements Payload {
    private final Payload payload;
    private final AtomicInteger releases = new AtomicInteger();

    Watched(final Payload payload) {
      this.payload = payload;
    }

    @Override
    public long bytes() {
      return payload.bytes();
    }

    @Override
    public InputStream open(final BooleanSupplier ended) throws IOException {
      return payload.open(ended);
    }

    @Override
    public void release() {
      releases.incrementAndGet();
      payload.release();
    }

    boolean isReleased() {
      return releases.get() > 0;
    }

    /** Whether the bytes are there still. */
    boolean opens() {
      try {
        payload.open(() -> false).close();
        return true;
      } catch (final IOException | RuntimeException e) {
        return false;
      }
    }
  }

  /** Nothing is on its way any more, and nothing came twice. */
  void assertAllReported() {
    TestNodes.eventually("all blocks are reported", () -> reported.get() >= asked.get());
    assertThat(reported).hasValue(asked.get());
  }

  /** What was handed out is released once, and its memory or its file given back with that. */
  void assertAllReleased() {
    TestNodes.eventually(
        "all payloads are released", () -> payloads.stream().allMatch(Watched::isReleased));
    assertThat(payloads).allSatisfy(watched -> assertThat(watched.releases).hasValue(1));
    TestNodes.eventually(
        "what was released is not there any more",
        () -> payloads.stream().noneMatch(Watched::opens));
  }
}
