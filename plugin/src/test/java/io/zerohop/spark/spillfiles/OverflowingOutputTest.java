package io.zerohop.spark.spillfiles;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.shuffle.write.MapOutputWriter.PackSource;
import io.zerohop.spark.TestNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.storage.ShuffleBlockId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** Map outputs of several batches, with room in memory for all of them, for some, or for none. */
class OverflowingOutputTest {
  private static final int SHUFFLE = 1;
  private static final int MAP = 2;
  private static final int PARTITIONS = 5;
  private static final int EMPTY = 3;
  private static final int BATCH_BYTES = 100_000;
  private static SparkContext spark;

  @TempDir private Path folder;
  private final ByteArrayOutputStream[] expected = new ByteArrayOutputStream[PARTITIONS];
  private IndexShuffleBlockResolver index;
  private MapOutputFiles files;
  private ShuffleNode node;
  private OverflowingOutput output;

  @BeforeAll
  static void startSpark() {
    spark =
        new SparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("overflow")
                .set("spark.ui.enabled", "false")
                .set("spark.shuffle.compress", "false"));
  }

  @AfterAll
  static void stopSpark() {
    spark.stop();
  }

  @BeforeEach
  void begin() {
    Arrays.setAll(expected, partition -> new ByteArrayOutputStream());
    index = (IndexShuffleBlockResolver) SparkEnv.get().shuffleManager().shuffleBlockResolver();
    files = new MapOutputFiles();
  }

  /** An output in memory that has room for so many batches beside the catalog's chunks. */
  private void start(final int batches) {
    node =
        ShuffleNode.start(
            TestNode.config(folder.resolve("s"))
                .set("pool.size", (batches + 2L) * (128 << 10))
                .set("segment.size", 128 << 10));
    output = output(node.newMapOutput(SHUFFLE, MAP, PARTITIONS));
  }

  private OverflowingOutput output(final MapOutputWriter memory) {
    return new OverflowingOutput(SHUFFLE, MAP, PARTITIONS, memory, files);
  }

  @AfterEach
  void close() throws IOException {
    output.close();
    files.unregisterShuffle(SHUFFLE);
    assertThat(SparkEnv.get().blockManager().diskBlockManager().getAllFiles().isEmpty()).isTrue();
    if (node != null) {
      node.unregisterShuffle(SHUFFLE);
      assertThat(node.stats().poolUsedBytes()).isZero();
      node.close();
    }
  }

  /** A batch whose blocks are expected behind those of earlier ones. */
  private PackSource batch(final int seed) {
    final UnsafeBuffer memory = new UnsafeBuffer(ByteBuffer.allocateDirect(BATCH_BYTES));
    final byte[] bytes = new byte[BATCH_BYTES];
    new Random(seed).nextBytes(bytes);
    memory.putBytes(0, bytes);
    final int each = BATCH_BYTES / PARTITIONS;
    for (int partition = 0; partition < PARTITIONS; partition++) {
      if (partition != EMPTY) {
        expected[partition].write(bytes, partition * each, each);
      }
    }
    return new PackSource() {
      @Override
      public int partitions() {
        return PARTITIONS;
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        if (partition != EMPTY) {
          consumer.extent(memory.addressOffset() + (long) partition * each, each);
        }
      }
    };
  }

  /** Packs batches until there is no room; returns the one that found none. */
  private PackSource fill() {
    for (int seed = 0; ; seed++) {
      final PackSource batch = batch(seed);
      if (!output.pack(batch)) {
        return batch;
      }
    }
  }

  private void assertFile(final long[] lengths) throws IOException {
    assertThat(files.holds(SHUFFLE, MAP)).isTrue();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      final ShuffleBlockId id = new ShuffleBlockId(SHUFFLE, MAP, partition);
      try (InputStream in = index.getBlockData(id, Option.empty()).createInputStream()) {
        assertThat(in.readAllBytes()).isEqualTo(expected[partition].toByteArray());
      }
      assertThat(lengths[partition]).isEqualTo(expected[partition].size());
    }
  }

  @Test
  void whatFitsIsPublishedInMemory() throws IOException {
    start(10);
    final PackSource batch = batch(1);
    assertThat(output.pack(batch)).isTrue();
    final long[] lengths = output.commit();
    assertThat(files.holds(SHUFFLE, MAP)).isFalse();
    assertThat(output.spilledBytes()).isZero();
    try (MapOutputLease lease = node.lease(SHUFFLE, MAP)) {
      for (int partition = 0; partition < PARTITIONS; partition++) {
        assertThat(lease.stream(partition).readAllBytes())
            .isEqualTo(expected[partition].toByteArray());
        assertThat(lengths[partition]).isEqualTo(expected[partition].size());
      }
    }
  }

  @Test
  void whatFindsNoRoomFollowsWhatDidInOneFile() throws IOException {
    start(3);
    output.spill(fill());
    assertThat(node.stats().poolUsedBytes()).isPositive();
    final PackSource later = batch(100);
    assertThat(output.pack(later)).as("room, once it was full").isFalse();
    output.spill(later);
    assertThat(output.spilledBytes()).isEqualTo(2L * (BATCH_BYTES - BATCH_BYTES / PARTITIONS));
    final long[] lengths = output.commit(batch(101));
    assertFile(lengths);
    assertThat(node.lease(SHUFFLE, MAP)).isNull();
  }

  @Test
  void partsOfABatchFollowOneAnotherInEachBlock() throws IOException {
    output = output(null);
    final PackSource first = batch(1);
    output.spill(first, batch(2));
    assertFile(output.commit());
  }

  @Test
  void withoutMemoryAllGoesToAFile() throws IOException {
    output = output(null);
    final PackSource batch = batch(1);
    assertThat(output.pack(batch)).isFalse();
    assertThat(output.overflowedBytes()).isZero();
    assertFile(output.commit(batch));
  }

  @Test
  void whatIsNotCommittedIsFreed() throws IOException {
    start(3);
    output.spill(fill());
    output.close();
    assertThat(files.holds(SHUFFLE, MAP)).isFalse();
    assertThat(node.stats().poolUsedBytes()).isZero();
  }
}
