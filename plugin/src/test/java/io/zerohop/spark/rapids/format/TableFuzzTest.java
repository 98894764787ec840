package io.zerohop.spark.rapids.format;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.zerohop.device.Fuzz;
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
  /** What all Kudo headers have, before a bit for each column. */
  private static final int KUDO_FIXED_BYTES = 28;

  /** Only cudf knows what its metadata says. */
  private static PackedTable table(final Random random) {
    final byte[] metadata = new byte[random.nextInt(4) * 40];
    random.nextBytes(metadata);
    return new PackedTable(
        1 + random.nextInt(1000), metadata, metadata.length == 0 ? 0 : random.nextInt(1 << 20));
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

  static Stream<Arguments> headerSeeds() {
    return Fuzz.seeds(TableFuzzTest::header);
  }

  static Stream<Arguments> kudoSeeds() {
    return Fuzz.seeds(TableFuzzTest::kudoHeader);
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

  @Test
  void whatIsRightIsTakenAndWhatIsCutOffIsNot() {
    hold(TableFuzzTest::header, TableFuzzTest::isHeader);
    hold(TableFuzzTest::header, TableFuzzTest::isHeaderOfStream);
    assertThat(Fuzz.good(TableFuzzTest::kudoHeader))
        .allMatch(TableFuzzTest::isKudoBlock)
        .noneMatch(bytes -> isKudoBlock(Arrays.copyOf(bytes, KUDO_FIXED_BYTES - 1)));
  }

  private static void hold(final Function<Random, byte[]> maker, final Predicate<byte[]> taken) {
    assertThat(Fuzz.good(maker))
        .allMatch(taken)
        .allSatisfy(bytes -> assertThat(taken).rejects(Arrays.copyOf(bytes, bytes.length - 1)));
  }
}
