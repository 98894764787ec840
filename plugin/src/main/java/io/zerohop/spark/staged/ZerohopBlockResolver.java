package io.zerohop.spark.staged;

import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.outputfiles.LateBuffer;
import io.zerohop.spark.outputfiles.LocalDirs;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.outputfiles.PartitionOutputStream;
import io.zerohop.spark.outputfiles.PartitionOutputStream.CountingFile;
import io.zerohop.spark.sent.Uploads;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.shuffle.MergedBlockMeta;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.MigratableResolver;
import org.apache.spark.shuffle.ShuffleBlockInfo;
import org.apache.spark.shuffle.ShuffleBlockResolver;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.storage.ShuffleMergedBlockId;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.List;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;

/**
 * Serves this executor's blocks to Spark: to readers that can reach them neither in place nor by
 * mapping, and to other executors when this one is decommissioned. A block in memory is wrapped
 * when it is sent; a map output that moves house is first written as a file in Spark's format, and
 * Spark's own index resolver does the rest. Thread safe.
 */
public final class ZerohopBlockResolver
    implements ShuffleBlockResolver, MigratableResolver, ScalaSeqTwin {
  private static final Logger LOG = LoggerFactory.getLogger(ZerohopBlockResolver.class);

  private final IndexShuffleBlockResolver index;
  private final MapOutputFiles files;
  private final Supplier<@Nullable ShuffleNode> node;
  private final Uploads uploads = new Uploads();
  private final Set<Integer> skipped = ConcurrentHashMap.newKeySet();

  /**
   * A resolver.
   *
   * @param node this executor's blocks in memory; supplies null while there are none
   */
  public ZerohopBlockResolver(
      final IndexShuffleBlockResolver index,
      final MapOutputFiles files,
      final Supplier<@Nullable ShuffleNode> node) {
    this.index = index;
    this.files = files;
    this.node = node;
  }

  /** Costs little: a block in memory is wrapped when its bytes are requested. */
  @Override
  public ManagedBuffer getBlockData(final BlockId blockId, final Option<String[]> dirs) {
    if (blockId instanceof ShuffleBlockId id) {
      if (OwnerProof.isOne(id)) {
        return OwnerProof.give(id, node.get());
      }
      final int reduceId = id.reduceId();
      return data(
          new ShuffleBlockBatchId(id.shuffleId(), id.mapId(), reduceId, reduceId + 1),
          where -> inFile(id, where),
          dirs);
    }
    if (blockId instanceof ShuffleBlockBatchId id) {
      return data(id, where -> inFile(id, where), dirs);
    }
    return index.getBlockData(blockId, dirs);
  }

  /** A block of a map output's file. */
  private ManagedBuffer inFile(final ShuffleBlockId id, final Option<String[]> dirs) {
    final ManagedBuffer stored =
        index.getBlockData(id, files.dirs(id.shuffleId(), id.mapId(), dirs));
    return LateBuffer.ofFile(stored, () -> files.verify(id, stored));
  }

  /** Several of them in a row. */
  private ManagedBuffer inFile(final ShuffleBlockBatchId id, final Option<String[]> dirs) {
    final Option<String[]> where = files.dirs(id.shuffleId(), id.mapId(), dirs);
    return LateBuffer.ofFile(
        index.getBlockData(id, where),
        () -> files.verify(id, single -> index.getBlockData(single, where)));
  }

  /**
   * Blocks of a map output, in memory if it is there and has no file, which is cheaper.
   *
   * @param inFile gives them where they are in a file; also, in the usual directories, if they
   *     leave memory before they are asked for: the spiller writes the file first
   */
  private ManagedBuffer data(
      final ShuffleBlockBatchId blocks,
      final Function<Option<String[]>, ManagedBuffer> inFile,
      final Option<String[]> dirs) {
    final ShuffleNode memory = node.get();
    return memory == null
            || files.holds(blocks.shuffleId(), blocks.mapId())
            || !memory.holds(blocks.shuffleId(), blocks.mapId())
        ? inFile.apply(dirs)
        : new MemoryBlockBuffer(memory, blocks, () -> inFile.apply(Option.empty()));
  }

  /** For a map output that moves house; its readers do not wait for that. */
  private void ensureFile(final int shuffleId, final long mapId) {
    final ShuffleNode memory = node.get();
    if (memory == null || files.holds(shuffleId, mapId)) {
      return;
    }
    final BooleanSupplier ended = memory.end(shuffleId);
    try (MapOutputLease output = memory.lease(shuffleId, mapId)) {
      if (output != null) {
        files.store(shuffleId, mapId, output);
        if (ended.getAsBoolean()) {
          files.drop(shuffleId, mapId); // The shuffle ended meanwhile.
        }
      }
    } catch (final IOException e) {
      throw new UncheckedIOException(
          "Could not write map output "
              + mapId
              + " of shuffle "
              + shuffleId
              + " to Spark's local directories (spark.local.dir)",
          e);
    }
  }

  @Override
  public Seq<ShuffleBlockInfo> getStoredShuffles() {
    final Set<ShuffleBlockInfo> stored = new LinkedHashSet<>();
    final Iterator<?> inFiles = SparkLinks.storedShuffles(index).iterator();
    while (inFiles.hasNext()) {
      stored.add((ShuffleBlockInfo) inFiles.next());
    }
    final ShuffleNode memory = node.get();
    if (memory != null) {
      for (final StoredOutput output : memory.stored()) {
        if (skipped.contains(output.shuffleId())) {
          continue;
        }
        stored.add(new ShuffleBlockInfo(output.shuffleId(), output.mapId()));
      }
    }
    List<ShuffleBlockInfo> list = List$.MODULE$.empty();
    for (final ShuffleBlockInfo info : stored) {
      list = new $colon$colon<>(info, list);
    }
    return list;
  }

  /**
   * The files of a map output, for another executor; none if they cannot be written, which Spark
   * calls deleted. A block that fails instead would make Spark give up the executor that it was
   * meant for, so that one damaged map output, or a full disk, would keep all others from leaving.
   */
  @Override
  public List<Tuple2<BlockId, ManagedBuffer>> getMigrationBlocks(final ShuffleBlockInfo info) {
    try {
      ensureFile(info.shuffleId(), info.mapId());
    } catch (final UncheckedIOException | ZerohopException e) {
      SparkCode.OUTPUT_NOT_MIGRATED
          .says(
              "cannot hand a map output to another executor (Spark's log says that it was deleted);"
                  + " its map task runs again when this executor is gone")
          .at("map output " + info.mapId() + " of shuffle " + info.shuffleId())
          .because(e)
          .warn(LOG, e);
      return List$.MODULE$.empty();
    }
    return index.getMigrationBlocks(info);
  }

  /** What other executors send, beside map outputs that move house. */
  public Uploads uploads() {
    return uploads;
  }

  /** A map output that moves house comes by single blocks, what is ours by batches of them. */
  @Override
  public StreamCallbackWithID putShuffleBlockAsStream(
      final BlockId blockId, final SerializerManager serializers) {
    return blockId instanceof ShuffleBlockBatchId ours
        ? uploads.take(ours)
        : index.putShuffleBlockAsStream(blockId, serializers);
  }

  /** Called from Spark 4.0 on: nobody will read the shuffle again, so migrating it is useless. */
  @Override
  public void addShuffleToSkip(final int shuffleId) {
    skipped.add(shuffleId);
    SparkLinks.skip(index, shuffleId);
  }

  @Override
  public Seq<ManagedBuffer> getMergedBlockData(
      final ShuffleMergedBlockId blockId, final Option<String[]> dirs) {
    throw noMergedBlocks(blockId);
  }

  @Override
  public MergedBlockMeta getMergedBlockMeta(
      final ShuffleMergedBlockId blockId, final Option<String[]> dirs) {
    throw noMergedBlocks(blockId);
  }

  private static UnsupportedOperationException noMergedBlocks(final BlockId blockId) {
    return new UnsupportedOperationException(
        "Zerohop has no merged block "
            + blockId
            + ": push-based shuffle (spark.shuffle.push.enabled) is not used with it");
  }

  @Override
  public void stop() {
    index.stop();
  }

  /**
   * A block of a map output in memory, or a batch of adjacent ones, for Spark's block transfer
   * service. It is verified, compressed and encrypted like a file, when Spark requests its bytes.
   * So a request for a thousand blocks costs nothing before its first one is sent, and only blocks
   * on their way take memory, or disk where they are large.
   *
   * <p>Spark asks in the thread that sends them, which serves other connections too, and it wants
   * to know the size first. So what is done here is no more than the blocks that were asked for,
   * and no lock of others is waited for: the spiller may hold those for as long as a map output
   * takes.
   *
   * <p>Spark answers a failure to give bytes with the failure of these blocks, and a failure to
   * give a size, where it sends a stream, by closing the connection, which fails all that the
   * reader has asked for. So a failure counts as no bytes here, and stays one.
   *
   * <p>Thread safe. Owns what it made until the last {@link #release}.
   */
  static final class MemoryBlockBuffer extends LateBuffer {
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

    private void wrapInto(final MapOutputLease output, final OutputStream bytes)
        throws IOException {
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
}
