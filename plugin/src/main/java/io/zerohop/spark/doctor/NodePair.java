package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.Hmac;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Two shuffle nodes in this process; one holds a map output. Sockets, proofs, leases and mappings
 * are those of executors. Owns them; not thread safe.
 */
final class NodePair implements AutoCloseable {
  /** Its folder beside those of applications; of this process alone. */
  static final String APPLICATION = "doctor-" + ProcessHandle.current().pid();

  private static final int SHUFFLE = 1;
  private static final int BLOCK_BYTES = 1 << 20;
  private static final long SEGMENT_BYTES = 64L << 20;
  private static final long POOL_SLACK = 2 * SEGMENT_BYTES;
  private static final int BUFFER_BYTES = 1 << 16;
  private static final int SECRET_BYTES = 32;
  private static final Duration LIMIT = Duration.ofSeconds(5);

  private final ShuffleNode owner;
  private final ShuffleNode reader;
  private final int partitions;

  /**
   * Starts them and writes.
   *
   * @param base folder of the sockets; without one, the default
   * @param bytes of the map output, in whole MiB
   * @throws ZerohopException (FALLBACK) if a node does not start; nothing stays behind
   */
  NodePair(final java.nio.file.@Nullable Path base, final int bytes) {
    final byte[] secret = newSecret();
    partitions = bytes / BLOCK_BYTES;
    owner = ShuffleNode.start(setup(base, "owner", secret, bytes));
    try (Undo undo = new Undo(this::closeOwner)) {
      write();
      reader = ShuffleNode.start(setup(base, "reader", secret, BLOCK_BYTES));
      undo.done();
    }
  }

  /** A secret as of an application that no other knows of. */
  static byte[] newSecret() {
    return Hmac.random(SECRET_BYTES);
  }

  /** Limits are short, since both nodes are here. */
  private static ShuffleNode.Setup setup(
      final java.nio.file.@Nullable Path base,
      final String name,
      final byte[] secret,
      final long bytes) {
    final ShuffleNode.Setup setup =
        new ShuffleNode.Setup(Config.defaults(), APPLICATION, name, secret);
    if (base != null) {
      setup.set("socket.dir", base);
    }
    return setup
        .stagedTimeout(LIMIT)
        .set("pool.size", bytes + POOL_SLACK)
        .set("segment.size", SEGMENT_BYTES)
        .set("segment.idle", Duration.ZERO)
        .set("paths", EnumSet.of(BlockPath.LOCAL, BlockPath.PEER, BlockPath.STAGED))
        .set("request.timeout", LIMIT)
        .set("device.timeout", LIMIT)
        .set("spill.start", 1);
  }

  private void write() {
    final UnsafeBuffer block = new UnsafeBuffer(ByteBuffer.allocateDirect(BLOCK_BYTES));
    block.setMemory(0, BLOCK_BYTES, (byte) 0x5a);
    try (MapOutput writer = owner.newMapOutput(SHUFFLE, 0, partitions)) {
      writer.append(
          new PackSource() {
            @Override
            public int partitions() {
              return partitions;
            }

            @Override
            public void forEachChunk(final int partition, final ExtentConsumer consumer) {
              consumer.extent(block.addressOffset(), BLOCK_BYTES);
            }
          });
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  /**
   * Reads all blocks by the owner itself.
   *
   * @return GB/s
   */
  double readLocally() {
    return read(owner, BlockPath.LOCAL);
  }

  /**
   * Reads all blocks by the other node, out of memory that it has mapped.
   *
   * @return GB/s
   * @throws ZerohopException (FALLBACK) if it cannot
   */
  double readAsPeer() {
    return read(reader, BlockPath.PEER);
  }

  private double read(final ShuffleNode node, final BlockPath path) {
    final List<Block> blocks =
        java.util.stream.IntStream.range(0, partitions)
            .mapToObj(partition -> new Block(SHUFFLE, 0, 0, partition, BLOCK_BYTES))
            .toList();
    final BlockSource source = new BlockSource("owner", owner.location(), "owner", blocks);
    final byte[] buffer = new byte[BUFFER_BYTES];
    final long begin = System.nanoTime();
    long bytes = 0;
    try (Fetch fetcher =
        node.fetch(
            List.of(source),
            (from, asked, sink) -> {
              throw unreachable();
            },
            new Fetches.Listener() {},
            () -> Thread.currentThread().isInterrupted())) {
      while (fetcher.next()) {
        if (fetcher.block().path() != path) {
          throw unreachable();
        }
        bytes += drain(fetcher.block().stream(), buffer);
      }
    }
    if (bytes != (long) partitions * BLOCK_BYTES) {
      throw new ZerohopException(
          Category.FALLBACK, "of " + partitions + " MiB only " + bytes + " bytes were read");
    }
    return (double) bytes / (System.nanoTime() - begin);
  }

  private static ZerohopException unreachable() {
    return new ZerohopException(
        Category.FALLBACK,
        "two nodes of this process do not reach each other's memory; their blocks would be staged");
  }

  private static long drain(final InputStream stream, final byte[] buffer) {
    try (stream) {
      long bytes = 0;
      for (int read = stream.read(buffer); read >= 0; read = stream.read(buffer)) {
        bytes += read;
      }
      return bytes;
    } catch (final IOException e) {
      throw new ZerohopException(
          Category.FALLBACK, Message.of("a block cannot be read").because(e), e);
    }
  }

  @Override
  public void close() {
    try {
      reader.close();
    } finally {
      closeOwner();
    }
  }

  private void closeOwner() {
    try {
      owner.unregisterShuffle(SHUFFLE);
    } finally {
      owner.close();
    }
  }
}
