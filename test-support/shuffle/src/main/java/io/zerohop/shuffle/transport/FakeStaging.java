package io.zerohop.shuffle.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/** A staged transport that makes up the right bytes, in the calling thread, and counts payloads. */
public class FakeStaging implements FallbackTransport {
  private final Function<Block, byte[]> maker;
  private final AtomicInteger open = new AtomicInteger();
  private final AtomicLong openBytes = new AtomicLong();
  private final AtomicLong mostOpenBytes = new AtomicLong();
  private final AtomicInteger requests = new AtomicInteger();
  private volatile boolean deserted;

  public FakeStaging(final int batches, final int most) {
    this(
        block ->
            TestBlocks.block(block.shuffleId(), block.mapId(), batches, block.partition(), most));
  }

  /** Of other blocks than {@link TestBlocks}. */
  public FakeStaging(final Function<Block, byte[]> maker) {
    this.maker = maker;
  }

  /** From now on no owner answers. */
  public void desert() {
    deserted = true;
  }

  @Override
  public boolean answers(final BlockSource source, final Duration limit) {
    return !deserted;
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    requests.incrementAndGet();
    assertThat(blocks).isNotEmpty();
    blocks.forEach(block -> sink.arrived(block, payload(block)));
  }

  /** The payload of a block, counted until it is released. */
  public Payload payload(final Block block) {
    final byte[] bytes = maker.apply(block);
    open.incrementAndGet();
    mostOpenBytes.accumulateAndGet(openBytes.addAndGet(bytes.length), Math::max);
    return new Payload() {
      private boolean released;

      @Override
      public long bytes() {
        return bytes.length;
      }

      @Override
      public InputStream open(final BooleanSupplier ended) {
        return new ByteArrayInputStream(bytes);
      }

      @Override
      public synchronized void release() {
        assertThat(released).as("released once").isFalse();
        released = true;
        open.decrementAndGet();
        openBytes.addAndGet(-bytes.length);
      }
    };
  }

  public int requests() {
    return requests.get();
  }

  /** Most bytes that had arrived and were not released at any time. */
  public long mostOpenBytes() {
    return mostOpenBytes.get();
  }

  public void assertAllReleased() {
    assertThat(open).hasValue(0);
  }
}
