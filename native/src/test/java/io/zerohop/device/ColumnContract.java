package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.RowHashBatch.HashMix;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.LongStream;
import java.util.zip.CRC32C;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * The part of the contract that is about columns: bits and offsets put together, and rows hashed.
 * Part of {@link DeviceContractTest}.
 */
public abstract class ColumnContract extends CopyContract {

  @Test
  void columnsOfBitsAndOffsetsArePutTogether() {
    final Random random = new Random(11);
    try (Segment segment = device.allocate(1 << 22);
        CopyStream stream = device.openStream("splice")) {
      for (int round = 0; round < 12; round++) {
        final SpliceRound pieces = new SpliceRound(random, round < 6 ? 70 : 40_000);
        subject.write(segment.address(), pieces.sources());
        final SpliceBatch batch = new SpliceBatch();
        assertThat(batch.isEmpty()).isTrue();
        pieces.fill(batch, segment.address(), segment.address() + (2 << 20));
        stream.submit(batch);
        batch.clear();
        stream.synchronize(LIMIT);
        assertThat(subject.read(segment.address() + (2 << 20), pieces.expected().length))
            .isEqualTo(pieces.expected());
      }
    }
  }

  @Test
  void rowsHashToTheSameNumbersEverywhere() {
    final Random random = new Random(12);
    try (Segment segment = device.allocate(16 << 20);
        HostBuffer results = device.hostBuffer(1 << 16);
        CopyStream stream = device.openStream("row hashes")) {
      for (int round = 0; round < 24; round++) {
        final RowHashRound columns =
            new RowHashRound(random, 1 + random.nextInt(round < 20 ? 500 : 9_000));
        subject.write(segment.address(), columns.bytes());
        final RowHashBatch batch = new RowHashBatch();
        assertThat(batch.isEmpty()).isTrue();
        final long[] expected = new long[8];
        for (int i = 0; i < 5; i++) {
          // The first table is whole, the others any rows of it.
          final int from = i == 0 ? 0 : random.nextInt(columns.rows()) / 32 * 32;
          final int count = i == 0 ? columns.rows() : random.nextInt(columns.rows() - from + 1);
          columns.fill(batch, segment.address(), from, count, i);
          expected[i] = columns.expected(from, count);
          for (int more = 5; i == 0 && more < expected.length; more++) {
            final int first = random.nextInt(columns.rows());
            final int rows = random.nextInt(columns.rows() - first + 1);
            batch.addRows(first, rows, more);
            expected[more] = columns.expected(first, rows);
          }
        }
        stream.submit(batch, results.address());
        stream.synchronize(LIMIT);
        assertThat(sums(batch, results, expected.length)).isEqualTo(expected);
        batch.clear();
        assertThat(batch.isEmpty()).isTrue();
      }
    }
  }

  @Test
  void manyTablesAndColumnsAreHashedInOneSubmission() {
    final int tables = 3_000;
    final int columns =
        300; // More than a thread block keeps at hand, and than a ring has room for.
    final byte[] bytes = random(9, 1 << 12);
    try (Segment segment = device.allocate(1 << 16);
        HostBuffer results = device.hostBuffer(Long.BYTES * tables);
        CopyStream stream = device.openStream("many tables")) {
      subject.write(segment.address(), bytes);
      final UnsafeBuffer values = new UnsafeBuffer(bytes);
      final RowHashBatch batch = new RowHashBatch();
      final long[] expected = new long[tables];
      for (int table = 0; table < tables; table++) {
        batch.beginTable(1, columns, table);
        long hash = RowHashBatch.ROW;
        for (int column = 0; column < columns; column++) {
          final int at = (table + column) % 512 * Long.BYTES;
          batch.addFixed(Long.BYTES, segment.address() + at, 0);
          hash =
              HashMix.combine(
                  hash, HashMix.combine(RowHashBatch.FIXED + Long.BYTES, values.getLong(at)));
        }
        expected[table] = hash;
      }
      assertThat(batch.results()).isEqualTo(tables);
      stream.submit(batch, results.address());
      stream.synchronize(LIMIT);
      assertThat(sums(batch, results, tables)).isEqualTo(expected);
    }
  }

  @Test
  void columnsThatCannotBeHashedAreRefused() {
    try (CopyStream stream = device.openStream("refused")) {
      final RowHashBatch batch = new RowHashBatch();
      assertThatThrownBy(() -> batch.addFixed(4, 0, 0)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> batch.addRows(0, 1, 0)).isInstanceOf(IllegalArgumentException.class);
      batch.beginTable(1, 1, 0);
      assertThatThrownBy(() -> batch.addRows(0, 1, 0)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> batch.addFixed(3, 0, 0))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> batch.addFixed(8, 4, 0))
          .isInstanceOf(IllegalArgumentException.class);
      for (int depth = 0; depth < RowHashBatch.MAX_DEPTH; depth++) {
        batch.beginStruct(1, 0);
      }
      assertThatThrownBy(() -> batch.beginList(0, 0)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> stream.submit(batch, 0)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> batch.beginTable(1, 1, 0)).isInstanceOf(IllegalStateException.class);
      batch.clear();
      batch.beginTable(0, 1, 0);
      batch.addFixed(4, 0, 0);
      assertThat(batch.results()).isZero();
      stream.submit(batch, 0);
      stream.synchronize(LIMIT);
    }
  }

  @Test
  void blocksHaveTheChecksumsOfTheirBytes() {
    final Random random = new Random(13);
    final int room = 4 << 20;
    try (Segment segment = device.allocate(2L * room);
        CopyStream stream = device.openStream("checksums")) {
      for (int round = 0; round < 40; round++) {
        final int most = 1 << random.nextInt(round < 30 ? 10 : 22);
        final int count = 1 + random.nextInt(Math.max(1, Math.min(3_000, room / 2 / most)));
        final long[] starts = new long[count + 1];
        for (int i = 0; i < count; i++) {
          starts[i + 1] = starts[i] + (random.nextInt(5) == 0 ? 0 : 1 + random.nextInt(most));
        }
        // Blocks that end where pieces do, or a few bytes beside it.
        for (int i = 0; round % 4 == 0 && i <= count; i++) {
          final long piece = BlockChecksums.PIECE_BYTES;
          final long near = (starts[i] + piece / 2) / piece * piece + random.nextInt(7) - 3;
          starts[i] = i == 0 ? 0 : Math.min(room - 8L, Math.max(starts[i - 1], near));
        }
        final int shift = random.nextInt(8);
        final byte[] bytes = random(round, (int) starts[count]);
        subject.write(segment.address() + shift, bytes);
        final UnsafeBuffer offsets = new UnsafeBuffer(new byte[Long.BYTES * (count + 1)]);
        for (int i = 0; i <= count; i++) {
          offsets.putLong(Long.BYTES * i, starts[i]);
        }
        subject.write(segment.address() + room, offsets.byteArray());
        final BlockChecksums sums =
            stream.checksums(
                segment.address() + shift,
                segment.address() + room,
                count,
                starts[count] + random.nextInt(100_000));
        stream.synchronize(LIMIT);
        final int[] values = sums.values(i -> starts[i]);
        final int[] listed = sums(stream, segment.address() + shift, starts);
        for (int i = 0; i < count; i++) {
          if (starts[i + 1] > starts[i]) {
            final CRC32C expected = new CRC32C();
            expected.update(bytes, (int) starts[i], (int) (starts[i + 1] - starts[i]));
            assertThat(listed[i]).as("listed, %s of %s", i, count).isEqualTo(values[i]);
            assertThat(values[i])
                .as("block %s of %s from %s to %s", i, count, starts[i], starts[i + 1])
                .isEqualTo((int) expected.getValue());
          }
        }
      }
    }
  }

  /** The same blocks, listed from the last one to the first. */
  private static int[] sums(final CopyStream stream, final long blocks, final long[] starts) {
    final int count = starts.length - 1;
    final long[] addresses = new long[count];
    final long[] lengths = new long[count];
    for (int i = 0; i < count; i++) {
      addresses[count - 1 - i] = blocks + starts[i];
      lengths[count - 1 - i] = starts[i + 1] - starts[i];
    }
    final int[] sums = BlockChecksums.of(stream, addresses, lengths, LIMIT);
    final int[] values = new int[count];
    Arrays.setAll(values, i -> sums[count - 1 - i]);
    return values;
  }

  @Test
  void thereMayBeVeryManyBlocks() {
    final int count = BlockChecksums.MAX_BLOCKS;
    final byte[] bytes = random(14, count);
    try (Segment segment = device.allocate(4 << 20);
        CopyStream stream = device.openStream("many blocks")) {
      subject.write(segment.address(), bytes);
      final UnsafeBuffer offsets = new UnsafeBuffer(new byte[Long.BYTES * (count + 1)]);
      for (int i = 0; i <= count; i++) {
        offsets.putLong(Long.BYTES * i, i);
      }
      subject.write(segment.address() + (1 << 20), offsets.byteArray());
      final BlockChecksums sums =
          stream.checksums(segment.address(), segment.address() + (1 << 20), count, 1L << 31);
      stream.synchronize(LIMIT);
      final int[] values = sums.values(i -> i);
      for (int i = 0; i < count; i += 1 + i / 100) {
        final CRC32C expected = new CRC32C();
        expected.update(bytes[i]);
        assertThat(values[i]).isEqualTo((int) expected.getValue());
      }
      final long[] starts = LongStream.rangeClosed(0, count).toArray();
      assertThat(sums(stream, segment.address(), starts)).isEqualTo(values);
    }
  }

  /** The sums of a batch's results by slot. */
  private static long[] sums(final RowHashBatch batch, final HostBuffer results, final int slots) {
    final UnsafeBuffer words = new UnsafeBuffer(results.address(), Long.BYTES * batch.results());
    final long[] sums = new long[slots];
    for (int i = 0; i < batch.results(); i++) {
      sums[batch.slot(i)] += words.getLong(Long.BYTES * i);
    }
    return sums;
  }
}
