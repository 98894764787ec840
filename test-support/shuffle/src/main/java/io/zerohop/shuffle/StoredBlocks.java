package io.zerohop.shuffle;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.spill.Evictor.ColdStorage;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/** Files of the tests: map outputs that had to leave memory, and the way to their blocks. */
final class StoredBlocks implements ColdStorage, FallbackTransport {
  private final Map<StoredOutput, byte[][]> stored = new ConcurrentHashMap<>();
  private final AtomicInteger storing = new AtomicInteger();
  private final AtomicInteger drops = new AtomicInteger();
  private volatile CountDownLatch gate = new CountDownLatch(0);
  private volatile boolean fails;

  @Override
  public void store(final int shuffleId, final long mapId, final MapOutputLease output)
      throws IOException {
    if (fails) {
      throw new IOException("No space left on device");
    }
    storing.incrementAndGet();
    output.checkIntact();
    final byte[][] blocks = new byte[output.partitions()][];
    for (int partition = 0; partition < blocks.length; partition++) {
      try (InputStream in = output.stream(partition)) {
        blocks[partition] = in.readAllBytes();
      }
    }
    try {
      if (!gate.await(30, TimeUnit.SECONDS)) {
        throw new IOException("held back for too long");
      }
    } catch (final InterruptedException e) {
      throw new IOException(e);
    }
    stored.put(new StoredOutput(shuffleId, mapId), blocks);
  }

  @Override
  public void drop(final int shuffleId, final long mapId) {
    stored.remove(new StoredOutput(shuffleId, mapId));
    drops.incrementAndGet();
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    for (final Block block : blocks) {
      final byte[][] output = stored.get(new StoredOutput(block.shuffleId(), block.mapId()));
      if (output == null) {
        sink.failed(block, new IOException(block + " was never stored"));
      } else {
        sink.arrived(block, payload(output[block.partition()]));
      }
    }
  }

  private static Payload payload(final byte[] bytes) {
    return new Payload() {
      @Override
      public long bytes() {
        return bytes.length;
      }

      @Override
      public InputStream open(final BooleanSupplier ended) {
        return new ByteArrayInputStream(bytes);
      }

      @Override
      public void release() {}
    };
  }

  /** From now on nothing can be stored. */
  void fail() {
    fails = true;
  }

  /** From now on nothing is complete before {@link #goOn}. */
  void holdBack() {
    gate = new CountDownLatch(1);
  }

  void goOn() {
    gate.countDown();
  }

  /** How many outputs somebody has begun to store. */
  int storing() {
    return storing.get();
  }

  int drops() {
    return drops.get();
  }

  int outputs() {
    return stored.size();
  }

  int outputs(final int shuffleId) {
    return (int) stored.keySet().stream().filter(name -> name.shuffleId() == shuffleId).count();
  }
}
