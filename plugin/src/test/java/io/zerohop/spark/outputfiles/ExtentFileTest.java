package io.zerohop.spark.outputfiles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.spark.TestNode;
import io.zerohop.spark.outputfiles.MapOutputFiles.ExtentFile;
import io.zerohop.spark.outputfiles.MapOutputFiles.OutputFile;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32C;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Map outputs that go from memory to a file as they are. */
class ExtentFileTest {
  private static final int SHUFFLE = 1;
  private static final int MAP = 2;
  private static final TransportConf CONF =
      new TransportConf("shuffle", new MapConfigProvider(Map.of()));

  @TempDir private Path folder;
  private final List<Long> allocated = new ArrayList<>();
  private File file;
  private ShuffleNode node;

  @BeforeEach
  void chooseFile() {
    file = folder.resolve("data").toFile();
  }

  private void start(final boolean checksums) {
    node =
        ShuffleNode.start(
            TestNode.config(folder.resolve("s"))
                .set("pool.size", 32 << 20)
                .set("segment.size", 16 << 20)
                .set("checksum.enabled", checksums));
  }

  @AfterEach
  void close() {
    node.unregisterShuffle(SHUFFLE);
    node.close();
    allocated.forEach(Platform::freeMemory);
  }

  /** A batch of blocks, one after the other, of random bytes and sizes from 0 to the most. */
  private final class Blocks implements PackSource {
    private final byte[][] blocks;
    private final long address;

    Blocks(final int partitions, final int most, final Random random) {
      blocks = new byte[partitions][];
      int bytes = 0;
      for (int partition = 0; partition < partitions; partition++) {
        blocks[partition] = new byte[random.nextInt(4) == 0 ? 0 : 1 + random.nextInt(most)];
        random.nextBytes(blocks[partition]);
        bytes += blocks[partition].length;
      }
      address = Platform.allocateMemory(Math.max(1, bytes));
      allocated.add(address);
    }

    @Override
    public int partitions() {
      return blocks.length;
    }

    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      long at = address;
      for (int before = 0; before < partition; before++) {
        at += blocks[before].length;
      }
      final byte[] block = blocks[partition];
      if (block.length > 0) {
        Platform.copyMemory(block, Platform.BYTE_ARRAY_OFFSET, null, at, block.length);
        consumer.extent(at, block.length);
      }
    }
  }

  /** Commits an output of some batches; returns the bytes of each partition. */
  private byte[][] commit(final int partitions, final int batches, final int most)
      throws IOException {
    final Random random = new Random(partitions * 31L + batches);
    final byte[][] expected = new byte[partitions][];
    final List<Blocks> all = new ArrayList<>();
    try (MapOutput writer = node.newMapOutput(SHUFFLE, MAP, partitions)) {
      for (int batch = 0; batch < batches; batch++) {
        all.add(new Blocks(partitions, most, random));
        writer.append(all.get(batch));
      }
      writer.commit();
    }
    for (int partition = 0; partition < partitions; partition++) {
      final ByteArrayOutputStream block = new ByteArrayOutputStream();
      for (final Blocks batch : all) {
        block.write(batch.blocks[partition]);
      }
      expected[partition] = block.toByteArray();
    }
    return expected;
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1, 3000000, true",
    "7, 3, 600000, true",
    "40, 5, 20000, true",
    "900, 4, 3000, true",
    "3000, 2, 300, true",
    "40, 5, 20000, false"
  })
  void theFileHasEveryByteAndEachPartitionItsChecksum(
      final int partitions, final int batches, final int most, final boolean checksums)
      throws IOException {
    start(checksums);
    final byte[][] expected = commit(partitions, batches, most);
    final long[] lengths = new long[partitions];
    final int[] sums = new int[partitions];
    final ByteArrayOutputStream all = new ByteArrayOutputStream();
    try (MapOutputLease lease = node.lease(SHUFFLE, MAP)) {
      final long bytes = ExtentFile.write(file, lease, lengths, sums);
      for (int partition = 0; partition < partitions; partition++) {
        all.write(expected[partition]);
        assertThat(lengths[partition]).isEqualTo(expected[partition].length);
        final CRC32C sum = new CRC32C();
        sum.update(expected[partition]);
        assertThat(sums[partition]).as("partition %d", partition).isEqualTo((int) sum.getValue());
      }
      assertThat(bytes).isEqualTo(all.size());
    }
    assertThat(Files.readAllBytes(file.toPath())).isEqualTo(all.toByteArray());
  }

  /** It was not looked at on the way, and must not look right in the file. */
  @Test
  void whatIsDamagedInMemoryIsFoundByWhoReadsTheFile() throws IOException {
    start(true);
    final int partitions = 20;
    final byte[][] expected = commit(partitions, 2, 300_000);
    final long[] lengths = new long[partitions];
    final OutputFile output = new OutputFile(new int[partitions], null);
    final int damaged = 11;
    try (MapOutputLease lease = node.lease(SHUFFLE, MAP)) {
      final long[] last = new long[1];
      lease.forEachExtent(damaged, (address, length) -> last[0] = address + length - 1);
      Platform.putByte(null, last[0], (byte) (Platform.getByte(null, last[0]) ^ 1));
      ExtentFile.write(file, lease, lengths, output.checksums());
    }
    long start = 0;
    for (int partition = 0; partition < partitions; partition++) {
      assertThat(lengths[partition]).isEqualTo(expected[partition].length);
      final ShuffleBlockId id = new ShuffleBlockId(SHUFFLE, MAP, partition);
      final ManagedBuffer block =
          new FileSegmentManagedBuffer(CONF, file, start, lengths[partition]);
      if (partition == damaged) {
        assertThatThrownBy(() -> output.verify(id, block)).hasMessageContaining("damaged");
      } else {
        output.verify(id, block);
      }
      start += lengths[partition];
    }
  }

  @Test
  void aFileThatCannotBeWrittenIsSaid() throws IOException {
    start(true);
    commit(3, 1, 10_000);
    try (MapOutputLease lease = node.lease(SHUFFLE, MAP)) {
      final File nowhere = folder.resolve("missing").resolve("data").toFile();
      assertThatThrownBy(() -> ExtentFile.write(nowhere, lease, new long[3], new int[3]))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("missing");
    }
  }
}
