package io.zerohop.spark.rows;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.rows.MapOutputBuffer.PartitionArena;
import java.io.ByteArrayOutputStream;
import java.util.Random;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PartitionArenaTest {
  private final PagePool pages = new PagePool(4L * PagePool.PAGE_BYTES);

  @AfterEach
  void everyPageCameBack() {
    assertThat(pages.outstandingBytes()).isZero();
    pages.close();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 7, 300, 3000})
  void keepsEveryPartitionsBytesInOrder(final int partitions) {
    final Random random = new Random(partitions);
    final ByteArrayOutputStream[] expected = new ByteArrayOutputStream[partitions];
    for (int p = 0; p < partitions; p++) {
      expected[p] = new ByteArrayOutputStream();
    }
    try (PartitionArena arena = new PartitionArena(pages, partitions, 8L << 20)) {
      for (int round = 0; round < 3; round++) {
        fill(arena, expected, random);
        for (int p = 0; p < partitions; p++) {
          assertThat(bytesOf(arena, p)).isEqualTo(expected[p].toByteArray());
          expected[p].reset();
        }
        arena.reset();
        assertThat(arena.isEmpty()).isTrue();
      }
    }
  }

  private static void fill(
      final PartitionArena arena, final ByteArrayOutputStream[] expected, final Random random) {
    while (true) {
      final byte[] bytes = new byte[1 + random.nextInt(random.nextInt(50) == 0 ? 100_000 : 300)];
      random.nextBytes(bytes);
      final int partition = random.nextInt(expected.length);
      if (random.nextBoolean()) {
        final long at = arena.reserve(partition, bytes.length);
        if (at == 0) {
          return;
        }
        Platform.copyMemory(bytes, Platform.BYTE_ARRAY_OFFSET, null, at, bytes.length);
        expected[partition].write(bytes, 0, bytes.length);
      } else {
        final int done = arena.append(partition, bytes, 0, bytes.length);
        expected[partition].write(bytes, 0, done);
        if (done < bytes.length) {
          return;
        }
      }
    }
  }

  @Test
  void aReservationIsNeverCutByAChunk() {
    try (PartitionArena arena = new PartitionArena(pages, 1, 8L << 20)) {
      final Random random = new Random(3);
      int left = 10_000;
      while (left-- > 0) {
        final int size = 1 + random.nextInt(2_000);
        final long at = arena.reserve(0, size);
        if (at == 0) {
          break;
        }
        final boolean[] inside = {false};
        arena.forEachChunk(
            0, (start, length) -> inside[0] |= start <= at && at + size <= start + length);
        assertThat(inside[0]).isTrue();
        if (left % 500 != 0) {
          continue;
        }
        arena.reset();
      }
    }
  }

  @Test
  void oneHugeRecordFitsAnEmptyArena() {
    try (PartitionArena arena = new PartitionArena(pages, 4, 1L << 20)) {
      assertThat(arena.reserve(2, 5 << 20)).isNotZero();
      assertThat(arena.reserve(2, 1 << 20)).as("the next one must wait for a flush").isZero();
      arena.reset();
      assertThat(arena.reserve(2, 1)).isNotZero();
      assertThat(arena.reserve(1, 6 << 20)).isZero();
      arena.reset();
      assertThat(arena.reserve(1, 6 << 20)).isNotZero();
    }
  }

  @Test
  void thousandsOfSmallPartitionsStaySmall() {
    try (PartitionArena arena = new PartitionArena(pages, 3000, 32L << 20)) {
      for (int p = 0; p < 3000; p++) {
        assertThat(arena.reserve(p, 33)).isNotZero();
      }
      assertThat(pages.outstandingBytes()).isEqualTo(PagePool.PAGE_BYTES);
    }
  }

  private static byte[] bytesOf(final PartitionArena arena, final int partition) {
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    arena.forEachChunk(
        partition,
        (address, length) -> {
          final byte[] part = new byte[length];
          Platform.copyMemory(null, address, part, Platform.BYTE_ARRAY_OFFSET, length);
          out.writeBytes(part);
        });
    return out.toByteArray();
  }

  /** The largest that Spark's UnsafeRow can be, and its length; untouched memory costs nothing. */
  @Test
  void theLargestRowHasABatchOfItsOwn() {
    final int largest = Integer.BYTES + ByteArrayMethods.MAX_ROUNDED_ARRAY_LENGTH;
    try (PartitionArena arena = new PartitionArena(pages, 2, 1L << 20)) {
      Platform.putLong(null, arena.reserve(1, Long.BYTES), 3);
      assertThat(arena.reserve(1, largest)).as("a flush first").isZero();
      arena.reset();
      final long at = arena.reserve(1, largest);
      Platform.putByte(null, at + largest - 1, (byte) 7);
      arena.forEachChunk(
          1,
          (address, length) -> {
            assertThat(address).isEqualTo(at);
            assertThat(length).isEqualTo(largest);
          });
      assertThat(arena.reserve(0, Long.BYTES)).as("a flush behind it").isZero();
    }
  }
}
