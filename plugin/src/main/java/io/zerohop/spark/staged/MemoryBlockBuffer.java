package io.zerohop.spark.staged;

import io.zerohop.device.Undo;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.outputfiles.LateBuffer;
import io.zerohop.spark.outputfiles.LocalDirs;
import io.zerohop.spark.outputfiles.PartitionOutputStream;
import io.zerohop.spark.outputfiles.PartitionOutputStream.CountingFile;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.time.Duration;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A block of a map output in memory, or a batch of adjacent ones, for Spark's block transfer
 * service. It is verified, compressed and encrypted like a file, when Spark requests its bytes. So
 * a request for a thousand blocks costs nothing before its first one is sent, and only blocks on
 * their way take memory, or disk where they are large.
 *
 * <p>Spark asks in the thread that sends them, which serves other connections too, and it wants to
 * know the size first. So what is done here is no more than the blocks that were asked for, and no
 * lock of others is waited for: the spiller may hold those for as long as a map output takes.
 *
 * <p>Spark answers a failure to give bytes with the failure of these blocks, and a failure to give
 * a size, where it sends a stream, by closing the connection, which fails all that the reader has
 * asked for. So a failure counts as no bytes here, and stays one.
 *
 * <p>Thread safe. Owns what it made until the last {@link #release}.
 */
final class MemoryBlockBuffer extends LateBuffer {
  private static final Logger LOG = LoggerFactory.getLogger(MemoryBlockBuffer.class);

  /** More is served from a temporary file, so that it never fills the heap. */
  private static final long MAX_PLAIN_BYTES = 32L << 20;

  /**
   * Of copies to a map output in GPU memory that is published already: they end in milliseconds.
   */
  private static final Duration COPIES_LIMIT = Duration.ofSeconds(1);

  /** Nothing of it is asked for by a buffer that has its file. */
  private static final TransportConf TRANSPORT =
      new TransportConf("shuffle", MapConfigProvider.EMPTY);

  private final ShuffleNode node;
  private final ShuffleBlockBatchId blocks;
  private final Supplier<ManagedBuffer> inFile;
  private int holders = 1;
  private @Nullable ManagedBuffer wrapped;
  private @Nullable RuntimeException failure;

  /** Where {@link #wrapped} is, if it is in a file of its own. */
  private @Nullable File temporary;

  /**
   * @param blocks of one map output; one, or several in a row
   * @param inFile gives them if they have left memory when they are asked for
   */
  MemoryBlockBuffer(
      final ShuffleNode node,
      final ShuffleBlockBatchId blocks,
      final Supplier<ManagedBuffer> inFile) {
    this.node = node;
    this.blocks = blocks;
    this.inFile = inFile;
  }

  @Override
  protected synchronized ManagedBuffer bytes() {
    if (failure != null) {
      throw failure; // A size was told already.
    }
    if (wrapped == null) {
      wrapped = wrap();
    }
    return wrapped;
  }

  private ManagedBuffer wrap() {
    try (MapOutputLease output = node.lease(blocks.shuffleId(), blocks.mapId(), COPIES_LIMIT)) {
      if (output == null) {
        return inFile.get();
      }
      long plainBytes = 0;
      for (int id = blocks.startReduceId(); id < blocks.endReduceId(); id++) {
        output.checkIntact(id); // Its checksum is not that of what is sent.
        plainBytes += output.bytes(id);
      }
      return plainBytes > MAX_PLAIN_BYTES ? wrapInFile(output) : wrapInHeap(output);
    } catch (final IOException e) {
      throw new IllegalStateException("Could not wrap " + blocks, e);
    }
  }

  private ManagedBuffer wrapInHeap(final MapOutputLease output) throws IOException {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    wrapInto(output, bytes);
    return new NioManagedBuffer(ByteBuffer.wrap(bytes.toByteArray()));
  }

  private ManagedBuffer wrapInFile(final MapOutputLease output) throws IOException {
    final String name = "zerohop_block_" + UUID.randomUUID();
    return LocalDirs.firstThatWorks(
        blocks.name(), dir -> wrapInFile(output, LocalDirs.file(dir, name)));
  }

  private ManagedBuffer wrapInFile(final MapOutputLease output, final File file)
      throws IOException {
    try (Undo undo = new Undo(() -> Files.deleteIfExists(file.toPath()))) {
      final long bytes = write(output, file);
      temporary = file;
      return undo.keep(new FileSegmentManagedBuffer(TRANSPORT, file, 0, bytes));
    }
  }

  private long write(final MapOutputLease output, final File file) throws IOException {
    try (CountingFile out = new CountingFile(file)) {
      wrapInto(output, out);
      return out.bytes();
    }
  }

  private void wrapInto(final MapOutputLease output, final OutputStream bytes) throws IOException {
    final SerializerManager serializers = SparkEnv.get().serializerManager();
    for (int reduceId = blocks.startReduceId(); reduceId < blocks.endReduceId(); reduceId++) {
      final ShuffleBlockId id = new ShuffleBlockId(blocks.shuffleId(), blocks.mapId(), reduceId);
      try (InputStream plain = output.stream(reduceId);
          PartitionOutputStream part =
              new PartitionOutputStream(bytes, stream -> serializers.wrapStream(id, stream))) {
        plain.transferTo(part);
      }
    }
  }

  /** 0 if the bytes are not available: the reader of the stream gets the cause. */
  @Override
  public synchronized long size() {
    try {
      return bytes().size();
    } catch (final RuntimeException e) {
      failure = e;
      return 0;
    }
  }

  @Override
  public synchronized ManagedBuffer retain() {
    holders++;
    return this;
  }

  /** The last one drops what was made; it is made again should somebody ask once more. */
  @Override
  public synchronized ManagedBuffer release() {
    holders = Math.max(0, holders - 1);
    if (holders == 0) {
      drop();
    }
    return this;
  }

  private void drop() {
    wrapped = null;
    final File file = temporary;
    if (file == null) {
      return;
    }
    try {
      Files.deleteIfExists(file.toPath());
    } catch (final IOException e) {
      SparkCode.TEMPORARY_NOT_DELETED
          .says("cannot delete a temporary file, which stays until the executor ends")
          .at(file.toString())
          .because(e)
          .warn(LOG);
    }
    temporary = null;
  }

  @Override
  public String toString() {
    return blocks + " in memory";
  }
}
