package io.zerohop.spark.staged;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.outputfiles.LateBuffer;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.sent.Uploads;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.shuffle.MergedBlockMeta;
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
      final int reduceId = id.reduceId();
      final ManagedBuffer buffer =
          inMemory(
              new ShuffleBlockBatchId(id.shuffleId(), id.mapId(), reduceId, reduceId + 1),
              () -> inFile(id, Option.empty()));
      return buffer == null ? inFile(id, dirs) : buffer;
    }
    if (blockId instanceof ShuffleBlockBatchId id) {
      final ManagedBuffer buffer = inMemory(id, () -> inFile(id, Option.empty()));
      return buffer == null ? inFile(id, dirs) : buffer;
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
   * Blocks of a map output in memory; null if it is not there, or has a file, which is cheaper.
   *
   * @param inFile gives them if they leave memory before they are asked for: the spiller writes the
   *     file first
   */
  private @Nullable ManagedBuffer inMemory(
      final ShuffleBlockBatchId blocks, final Supplier<ManagedBuffer> inFile) {
    final ShuffleNode memory = node.get();
    return memory == null
            || files.holds(blocks.shuffleId(), blocks.mapId())
            || !memory.holds(blocks.shuffleId(), blocks.mapId())
        ? null
        : new MemoryBlockBuffer(memory, blocks, inFile);
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
}
