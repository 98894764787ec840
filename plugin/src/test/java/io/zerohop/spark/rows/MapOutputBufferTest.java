package io.zerohop.spark.rows;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.HostBlocks;
import io.zerohop.shuffle.write.MapOutput.OverflowFiles;
import io.zerohop.spark.rows.MapOutputBuffer.PagePool;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Random;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MapOutputBufferTest {
  private final PagePool pages = new PagePool(4L * PagePool.PAGE_BYTES);
  private Batches batches;

  @AfterEach
  void everyPageCameBack() {
    assertThat(pages.outstandingBytes()).isZero();
    pages.close();
  }

  /** A buffer whose output has no memory. */
  private MapOutputBuffer buffer(
      final int partitions, final long limitBytes, final boolean keepsBytes) {
    batches = new Batches(partitions, keepsBytes);
    return new MapOutputBuffer(
        pages, partitions, limitBytes, () -> MapOutput.inFiles(1, 2, partitions, batches));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 7, 300, 3000})
  void keepsEveryPartitionsBytesInOrder(final int partitions) throws IOException {
    final Random random = new Random(partitions);
    final ByteArrayOutputStream[] expected = new ByteArrayOutputStream[partitions];
    Arrays.setAll(expected, partition -> new ByteArrayOutputStream());
    try (MapOutputBuffer buffer = buffer(partitions, 8L << 20, true)) {
      while (batches.spilled < 3) {
        fill(buffer, expected, random);
      }
      final long[] lengths = buffer.commit();
      for (int partition = 0; partition < partitions; partition++) {
        assertThat(batches.bytes[partition].toByteArray())
            .isEqualTo(expected[partition].toByteArray());
        assertThat(lengths[partition]).isEqualTo(expected[partition].size());
      }
    }
  }

  private static void fill(
      final MapOutputBuffer buffer, final ByteArrayOutputStream[] expected, final Random random)
      throws IOException {
    final byte[] bytes = new byte[1 + random.nextInt(random.nextInt(50) == 0 ? 100_000 : 300)];
    random.nextBytes(bytes);
    final int partition = random.nextInt(expected.length);
    expected[partition].write(bytes, 0, bytes.length);
    if (random.nextBoolean()) {
      final long at = buffer.reserve(partition, bytes.length);
      Platform.copyMemory(bytes, Platform.BYTE_ARRAY_OFFSET, null, at, bytes.length);
    } else {
      buffer.append(partition, bytes, 0, bytes.length);
    }
  }

  @Test
  void aReservationIsNeverCutByAChunk() throws IOException {
    try (MapOutputBuffer buffer = buffer(1, 1L << 20, false)) {
      final Random random = new Random(3);
      while (batches.spilled < 3) {
        final int size = 1 + random.nextInt(2_000);
        final long at = buffer.reserve(0, size);
        final boolean[] inside = {false};
        buffer.forEachChunk(
            0, (start, length) -> inside[0] |= start <= at && at + size <= start + length);
        assertThat(inside[0]).isTrue();
      }
    }
  }

  @Test
  void oneHugeRecordFitsAnEmptyBatch() throws IOException {
    try (MapOutputBuffer buffer = buffer(4, 1L << 20, false)) {
      buffer.reserve(2, 5 << 20);
      assertThat(batches.spilled).isZero();
      buffer.reserve(2, 1 << 20);
      assertThat(batches.spilled).as("the next one waits for a flush").isEqualTo(1);
      buffer.reserve(1, 6 << 20);
      assertThat(batches.spilled).isEqualTo(2);
      buffer.commit();
      assertThat(batches.largest).isEqualTo(6 << 20);
    }
  }

  @Test
  void thousandsOfSmallPartitionsStaySmall() throws IOException {
    try (MapOutputBuffer buffer = buffer(3000, 32L << 20, false)) {
      for (int partition = 0; partition < 3000; partition++) {
        buffer.reserve(partition, 33);
      }
      assertThat(pages.outstandingBytes()).isEqualTo(PagePool.PAGE_BYTES);
      assertThat(batches.spilled).isZero();
    }
  }

  /** The largest that Spark's UnsafeRow can be, and its length; untouched memory costs nothing. */
  @Test
  void theLargestRowHasABatchOfItsOwn() throws IOException {
    final int largest = Integer.BYTES + ByteArrayMethods.MAX_ROUNDED_ARRAY_LENGTH;
    try (MapOutputBuffer buffer = buffer(2, 1L << 20, false)) {
      Platform.putLong(null, buffer.reserve(1, Long.BYTES), 3);
      final long at = buffer.reserve(1, largest);
      assertThat(batches.spilled).as("a flush first").isEqualTo(1);
      Platform.putByte(null, at + largest - 1, (byte) 7);
      buffer.forEachChunk(
          1,
          (address, length) -> {
            assertThat(address).isEqualTo(at);
            assertThat(length).isEqualTo(largest);
          });
      buffer.reserve(0, Long.BYTES);
      assertThat(batches.spilled).as("a flush behind it").isEqualTo(2);
      assertThat(batches.largest).isEqualTo(largest);
    }
  }

  /** Takes all batches, as files do. */
  private static final class Batches implements OverflowFiles {
    private final ByteArrayOutputStream[] bytes;
    private final boolean keepsBytes;
    private int spilled;
    private int largest;

    Batches(final int partitions, final boolean keepsBytes) {
      this.bytes = new ByteArrayOutputStream[partitions];
      this.keepsBytes = keepsBytes;
      Arrays.setAll(bytes, partition -> new ByteArrayOutputStream());
    }

    private long[] take(final HostBlocks batch) {
      final long[] lengths = new long[bytes.length];
      for (int i = 0; i < lengths.length; i++) {
        final int partition = i;
        batch.forEachExtent(
            partition,
            (address, length) -> {
              largest = Math.max(largest, length);
              if (keepsBytes) {
                final byte[] part = new byte[length];
                Platform.copyMemory(null, address, part, Platform.BYTE_ARRAY_OFFSET, length);
                bytes[partition].writeBytes(part);
              }
            });
        lengths[partition] = bytes[partition].size();
      }
      return lengths;
    }

    @Override
    public void spill(final HostBlocks batch) {
      take(batch);
      spilled++;
    }

    @Override
    public long[] write(final HostBlocks first, final HostBlocks last) {
      take(first);
      return take(last);
    }

    @Override
    public long spilledBytes() {
      return 0;
    }

    @Override
    public void close() {}
  }
}
