package io.zerohop.shuffle.transport;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.Transport.Sink;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/** A transport whose blocks arrive when the test says so. */
final class HeldTransport implements FallbackTransport {
  private final Queue<Runnable> arrivals = new ConcurrentLinkedQueue<>();
  private final AtomicInteger asked = new AtomicInteger();
  private final FallbackTransport transport;

  HeldTransport(final FallbackTransport transport) {
    this.transport = transport;
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    arrivals.add(() -> transport.fetch(source, blocks, sink));
    asked.addAndGet(blocks.size());
  }

  /** Waits until so many blocks have been asked for in all. */
  void awaitAsked(final int blocks) {
    eventually(blocks + " blocks are asked for", () -> asked.get() >= blocks);
    assertThat(asked).hasValue(blocks);
  }

  void arrive() {
    for (Runnable next = arrivals.poll(); next != null; next = arrivals.poll()) {
      next.run();
    }
  }
}
