package io.zerohop.spark.outputfiles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.spark.TestNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
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
class SpilledBatchesTest {
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
  private MapOutput output;

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
  private void start(final int batches) throws IOException {
    node =
        ShuffleNode.start(
            TestNode.config(folder.resolve("s"))
                .set("pool.size", (batches + 2L) * (128 << 10))
                .set("segment.size", 128 << 10));
    output = files.newOutput(node, SHUFFLE, MAP, PARTITIONS, Tier.HOST);
  }

  private void startWithoutMemory() {
    output = files.newOutput(null, SHUFFLE, MAP, PARTITIONS, Tier.HOST);
  }

  @AfterEach
  void close() {
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

  /** Appends batches until one of them finds no room in memory. */
  private void fill() throws IOException {
    for (int seed = 0; output.spilledBytes() == 0; seed++) {
      output.append(batch(seed));
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
    output.append(batch(1));
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
    fill();
    assertThat(node.stats().poolUsedBytes()).isPositive();
    output.append(batch(100)); // Once memory was full, no batch goes there.
    assertThat(output.spilledBytes()).isEqualTo(2L * (BATCH_BYTES - BATCH_BYTES / PARTITIONS));
    final long[] lengths = output.commit(batch(101));
    assertFile(lengths);
    assertThat(node.lease(SHUFFLE, MAP)).isNull();
  }

  @Test
  void theLastBatchIsInMemoryOrInTheFile() throws IOException {
    start(10);
    output.commit(batch(1));
    assertThat(node.holds(SHUFFLE, MAP)).isTrue();
    assertThat(files.holds(SHUFFLE, MAP)).isFalse();
    node.remove(SHUFFLE, MAP);
    Arrays.setAll(expected, partition -> new ByteArrayOutputStream());
    startWithoutMemory();
    final long[] lengths = output.commit(batch(2));
    assertThat(output.spilledBytes()).isZero();
    assertFile(lengths);
  }

  @Test
  void aBlocksHeaderGoesAheadOfItsBytes() throws IOException {
    for (final boolean last : new boolean[] {false, true}) {
      startWithoutMemory();
      final PackSource headers = batch(1);
      final PackSource payload = batch(2);
      final PackSource both =
          new PackSource() {
            @Override
            public int partitions() {
              return PARTITIONS;
            }

            @Override
            public PackSource headers() {
              return headers;
            }

            @Override
            public void forEachChunk(final int partition, final ExtentConsumer consumer) {
              payload.forEachChunk(partition, consumer);
            }
          };
      if (last) {
        assertFile(output.commit(both));
      } else {
        output.append(both);
        assertFile(output.commit());
        files.unregisterShuffle(SHUFFLE);
        Arrays.setAll(expected, partition -> new ByteArrayOutputStream());
      }
    }
  }

  @Test
  void aCommittedOutputTakesNothingMore() throws IOException {
    startWithoutMemory();
    output.commit(batch(1));
    final PackSource more = batch(2);
    assertThatThrownBy(() -> output.append(more)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(output::commit).isInstanceOf(IllegalStateException.class);
    assertThat(files.holds(SHUFFLE, MAP)).isTrue();
  }

  /** It has its file, where readers find it. */
  @Test
  void anOutputWhoseTemporaryFileCannotBeDeletedIsCommitted() throws IOException {
    startWithoutMemory();
    output.append(batch(1));
    final File temporary = SparkEnv.get().blockManager().diskBlockManager().getAllFiles().head();
    final PackSource last = batch(2);
    final PackSource afterwards =
        new PackSource() {
          @Override
          public int partitions() {
            return PARTITIONS;
          }

          @Override
          public void forEachChunk(final int partition, final ExtentConsumer consumer) {
            last.forEachChunk(partition, consumer);
            if (temporary.isFile()) { // It is open by now, and read to its end.
              assertThat(temporary.delete() && new File(temporary, "held").mkdirs()).isTrue();
            }
          }
        };
    try {
      assertFile(output.commit(afterwards));
    } finally {
      assertThat(new File(temporary, "held").delete() && temporary.delete()).isTrue();
    }
  }

  @Test
  void whatIsNotCommittedIsFreed() throws IOException {
    start(3);
    fill();
    output.close();
    assertThat(files.holds(SHUFFLE, MAP)).isFalse();
    assertThat(node.stats().poolUsedBytes()).isZero();
  }
}
