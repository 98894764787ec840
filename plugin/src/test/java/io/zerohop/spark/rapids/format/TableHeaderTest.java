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
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TableHeaderTest {
  private static final List<PackedTable> TABLES =
      List.of(
          new PackedTable(17, new byte[] {1, 2, 3}, 6_000_000_000L),
          new PackedTable(5, new byte[0], 0),
          new PackedTable(1, new byte[200], 64));

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

  /** Of cudf's metadata 40 bytes a column, and as many or fewer of the table; a contract test. */
  @Test
  void whatIsTakenForTypicalGrowsWithTheColumns() {
    assertThat(TableHeader.typicalBytes(1))
        .isEqualTo(TableHeader.bytes(List.of(new PackedTable(2, new byte[80], 64))));
    assertThat(TableHeader.typicalBytes(100))
        .isEqualTo(TableHeader.bytes(List.of(new PackedTable(2, new byte[101 * 40], 6400))));
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
    final PackedTable table = new PackedTable(1, new byte[1], large);
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
