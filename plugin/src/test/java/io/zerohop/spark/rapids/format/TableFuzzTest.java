package io.zerohop.spark.rapids.format;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.zerohop.device.Fuzz;
import io.zerohop.spark.rapids.format.KudoLayout.KudoBlock;
import io.zerohop.spark.rapids.format.PackedTableMaker.Kind;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What an owner says of its tables: a header of ours around metadata of cudf's. */
class TableFuzzTest {
  private static final int ROWS = 3;
  private static final int PACKED_BYTES = 32 << 10;

  /** What all Kudo headers have, before a bit for each column. */
  private static final int KUDO_FIXED_BYTES = 28;

  private static Kind kind(final Random random, final int depth) {
    final boolean nullable = random.nextBoolean();
    return switch (random.nextInt(depth > 1 ? 2 : 4)) {
      case 0 -> Kind.of(PackedColumns.STRING, nullable);
      case 1 -> Kind.of(PackedTableMaker.INT64, nullable);
      case 2 -> Kind.of(PackedColumns.LIST, nullable, kind(random, depth + 1));
      default ->
          Kind.of(PackedColumns.STRUCT, nullable, kind(random, depth + 1), kind(random, depth + 1));
    };
  }

  private static PackedTable table(final Random random) {
    final List<Kind> kinds = new ArrayList<>();
    final List<List<Object>> columns = new ArrayList<>();
    for (int column = random.nextInt(4); column >= 0; column--) {
      final Kind kind = kind(random, 0);
      final List<Object> values = new ArrayList<>();
      for (int row = 0; row < ROWS; row++) {
        values.add(PackedTableMaker.value(random, kind));
      }
      kinds.add(kind);
      columns.add(values);
    }
    return PackedTableMaker.pack(kinds, columns, ByteBuffer.allocate(PACKED_BYTES));
  }

  private static byte[] header(final Random random) {
    final List<PackedTable> tables = new ArrayList<>();
    for (int i = random.nextInt(3); i >= 0; i--) {
      tables.add(table(random));
    }
    final byte[] bytes = new byte[TableHeader.bytes(tables)];
    TableHeader.write(tables, ByteBuffer.wrap(bytes));
    return bytes;
  }

  private static byte[] kudoHeader(final Random random) {
    return KudoBlockTest.header(
            1 + random.nextInt(1000),
            random.nextInt(100),
            random.nextInt(100),
            200 + random.nextInt(10_000),
            1 + random.nextInt(40))
        .array();
  }

  private static byte[] metadata(final Random random) {
    return table(random).metadata();
  }

  static Stream<Arguments> headerSeeds() {
    return Fuzz.seeds(TableFuzzTest::header);
  }

  static Stream<Arguments> kudoSeeds() {
    return Fuzz.seeds(TableFuzzTest::kudoHeader);
  }

  static Stream<Arguments> metadataSeeds() {
    return Fuzz.seeds(TableFuzzTest::metadata);
  }

  @MethodSource("headerSeeds")
  @FuzzTest
  void headers(final byte[] bytes) {
    isHeader(bytes);
  }

  private static boolean isHeader(final byte[] bytes) {
    try {
      return !TableHeader.read(ByteBuffer.wrap(bytes)).isEmpty();
    } catch (final IOException e) {
      return false;
    }
  }

  @MethodSource("headerSeeds")
  @FuzzTest
  void headersOfStreams(final byte[] bytes) {
    isHeaderOfStream(bytes);
  }

  private static boolean isHeaderOfStream(final byte[] bytes) {
    try {
      return TableHeader.read(new ByteArrayInputStream(bytes)) != null;
    } catch (final IOException e) {
      return false;
    }
  }

  @MethodSource("kudoSeeds")
  @FuzzTest
  void kudoBlocks(final byte[] bytes) {
    isKudoBlock(bytes);
  }

  private static boolean isKudoBlock(final byte[] bytes) {
    try {
      return KudoBlock.length(ByteBuffer.wrap(bytes)) > 0;
    } catch (final IOException e) {
      return false;
    }
  }

  /** Refused without an exception, whatever it is. */
  @MethodSource("metadataSeeds")
  @FuzzTest
  void columns(final byte[] bytes) {
    fits(bytes);
  }

  private static boolean fits(final byte[] bytes) {
    final PackedColumns columns = PackedColumns.parse(bytes);
    return columns != null && columns.fits(PACKED_BYTES, new int[0]);
  }

  @Test
  void whatIsRightIsTakenAndWhatIsCutOffIsNot() {
    hold(TableFuzzTest::header, TableFuzzTest::isHeader);
    hold(TableFuzzTest::header, TableFuzzTest::isHeaderOfStream);
    assertThat(Fuzz.good(TableFuzzTest::kudoHeader))
        .allMatch(TableFuzzTest::isKudoBlock)
        .noneMatch(bytes -> isKudoBlock(Arrays.copyOf(bytes, KUDO_FIXED_BYTES - 1)));
    hold(TableFuzzTest::metadata, TableFuzzTest::fits);
  }

  private static void hold(final Function<Random, byte[]> maker, final Predicate<byte[]> taken) {
    assertThat(Fuzz.good(maker))
        .allMatch(taken)
        .allSatisfy(bytes -> assertThat(taken).rejects(Arrays.copyOf(bytes, bytes.length - 1)));
  }
}
