package io.zerohop.spark.rapids.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;

class TableHeaderTest {
  private static final List<PackedTable> TABLES =
      List.of(
          new PackedTable(17, new byte[] {1, 2, 3}, 6_000_000_000L, new int[] {0, 9}),
          new PackedTable(5, new byte[0], 0, new int[0]),
          new PackedTable(1, new byte[200], 64, new int[0]));

  private static byte[] encoded(final List<PackedTable> tables) {
    final byte[] bytes = new byte[TableHeader.bytes(tables)];
    final ByteBuffer to = ByteBuffer.wrap(bytes);
    TableHeader.write(tables, to);
    assertThat(to.hasRemaining()).isFalse();
    return bytes;
  }

  private static void assertSame(final List<PackedTable> read) {
    assertThat(read).usingRecursiveFieldByFieldElementComparator().isEqualTo(TABLES);
  }

  @Test
  void whatWasWrittenIsRead() throws IOException {
    assertSame(TableHeader.read(ByteBuffer.wrap(encoded(TABLES))));
    assertThat(TableHeader.payload(TABLES)).isEqualTo(6_000_000_064L);
  }

  @Test
  void whatIsTakenForTypicalIsAsLongAsAHeader() {
    for (final int columns : new int[] {1, 5, 100}) {
      final List<PackedTableMaker.Kind> kinds =
          Collections.nCopies(columns, PackedTableMaker.Kind.of(PackedTableMaker.INT64, false));
      final List<List<Object>> values = Collections.nCopies(columns, List.of(1L, 2L));
      final ByteBuffer packed = ByteBuffer.allocate(columns * 64);
      final int bytes = TableHeader.bytes(List.of(PackedTableMaker.pack(kinds, values, packed)));
      assertThat(TableHeader.typicalBytes(columns)).isCloseTo(bytes, Percentage.withPercentage(25));
    }
  }

  @Test
  void streamsAreLeftAtTheTables() throws IOException {
    final byte[] header = encoded(TABLES);
    final byte[] stream = java.util.Arrays.copyOf(header, header.length + 3);
    stream[header.length] = 42;
    final InputStream in = new ByteArrayInputStream(stream);
    assertSame(TableHeader.read(in));
    assertThat(in.readAllBytes()).isEqualTo(new byte[] {42, 0, 0});
    assertThat(TableHeader.read(in)).isNull();
  }

  @Test
  void cutStreamsAreNoticed() {
    final byte[] header = encoded(TABLES);
    for (int length = 1; length < header.length; length++) {
      final InputStream in = new ByteArrayInputStream(header, 0, length);
      assertThatThrownBy(() -> TableHeader.read(in)).isInstanceOf(EOFException.class);
    }
  }

  @Test
  void aLengthThatIsALieTakesNoMemory() {
    final byte[] header = java.util.Arrays.copyOf(encoded(TABLES), 100);
    ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).putLong(8, 1 << 30);
    final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    final long before = threads.getCurrentThreadAllocatedBytes();
    assertThatThrownBy(() -> TableHeader.read(new ByteArrayInputStream(header)))
        .isInstanceOf(EOFException.class);
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(16 << 20);
  }

  @Test
  void tablesThatAreTooLongTogetherAreDamage() {
    final long large = (1L << 44) - 1;
    final PackedTable table = new PackedTable(1, new byte[1], large, new int[0]);
    assertThatThrownBy(() -> TableHeader.read(ByteBuffer.wrap(encoded(List.of(table, table)))))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("damaged");
  }

  @Test
  void damageEndsInAnExceptionOrAnotherHeader() {
    final Random random = new Random(3);
    for (int i = 0; i < 20_000; i++) {
      final byte[] header = encoded(TABLES);
      header[random.nextInt(header.length)] ^= (byte) (1 << random.nextInt(8));
      try {
        final List<PackedTable> read = TableHeader.read(ByteBuffer.wrap(header));
        assertThat(TableHeader.bytes(read)).isEqualTo(header.length);
      } catch (final IOException e) {
        assertThat(e).hasMessageContaining("damaged");
      }
    }
  }
}
