package io.zerohop.spark.rapids.format;

import io.zerohop.device.Fuzz;
import io.zerohop.spark.rapids.format.PackedTableMaker.Kind;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What an owner says of its tables: a header of ours around metadata of cudf's. */
class TableFuzzTest {
  private static final int ROWS = 3;
  private static final int PACKED_BYTES = 32 << 10;

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

  @Test
  void headers() throws IOException {
    Fuzz.run(
        "table header",
        TableFuzzTest::header,
        bytes -> !TableHeader.read(ByteBuffer.wrap(bytes)).isEmpty(),
        List.of(IOException.class));
  }

  @Test
  void headersOfStreams() throws IOException {
    Fuzz.run(
        "table header of a stream",
        TableFuzzTest::header,
        bytes -> TableHeader.read(new ByteArrayInputStream(bytes)) != null,
        List.of(IOException.class));
  }

  @Test
  void kudoBlocks() throws IOException {
    Fuzz.run(
        "header of a Kudo block",
        random ->
            KudoBlockTest.header(
                    1 + random.nextInt(1000),
                    random.nextInt(100),
                    random.nextInt(100),
                    200 + random.nextInt(10_000),
                    1 + random.nextInt(40))
                .array(),
        bytes -> KudoBlock.length(ByteBuffer.wrap(bytes)) > 0,
        List.of(IOException.class));
  }

  @Test
  void columns() throws IOException {
    Fuzz.run(
        "packed columns",
        random -> table(random).metadata(),
        bytes -> {
          final PackedColumns columns = PackedColumns.parse(bytes);
          return columns != null && columns.fits(PACKED_BYTES, new int[0]);
        },
        List.of());
  }
}
