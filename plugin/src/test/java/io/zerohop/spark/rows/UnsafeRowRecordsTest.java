package io.zerohop.spark.rows;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.spark.TestNode;
import io.zerohop.spark.rows.RowsReader.UnsafeRowRecords;
import io.zerohop.spark.rows.RowsReader.UnsafeRows;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Product2;
import scala.collection.Iterator;

/** Rows that lie in a node's memory, and what becomes of them when the fetch is through. */
class UnsafeRowRecordsTest {
  private static final int ROWS = 20;
  private static final int PARTITIONS = 3;

  @TempDir private java.nio.file.Path base;
  private ShuffleNode node;

  @BeforeEach
  void start() {
    node =
        ShuffleNode.start(
            TestNode.config(base.resolve("s"))
                .set("pool.size", 1 << 20)
                .set("segment.size", 1 << 20));
  }

  @AfterEach
  void close() {
    node.close();
  }

  /** Rows of one string, as the writer for them lays them out; told apart by the prefix. */
  private void write(final int shuffleId, final String prefix) {
    final UnsafeBuffer bytes = new UnsafeBuffer(ByteBuffer.allocateDirect(PARTITIONS * ROWS * 64));
    final int[] ends = new int[PARTITIONS];
    int at = 0;
    for (int partition = 0; partition < PARTITIONS; partition++) {
      for (int i = 0; i < ROWS; i++) {
        final UnsafeRow row = row(prefix + partition + " " + i);
        bytes.putInt(at, UnsafeRows.bigEndian(row.getSizeInBytes()));
        bytes.putBytes(at + Integer.BYTES, row.getBytes());
        at += Integer.BYTES + row.getSizeInBytes();
      }
      ends[partition] = at;
    }
    try (MapOutput writer = node.newMapOutput(shuffleId, 0, PARTITIONS)) {
      writer.append(new Rows(bytes, ends));
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  private static UnsafeRow row(final String text) {
    final UnsafeRowWriter writer = new UnsafeRowWriter(1, 64);
    writer.reset();
    writer.zeroOutNullBytes();
    writer.write(0, UTF8String.fromString(text));
    return writer.getRow();
  }

  private Fetch fetch(final int shuffleId) {
    final List<Block> blocks = new ArrayList<>();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      blocks.add(new Block(shuffleId, 0, 0, partition, 64));
    }
    return node.fetch(
        List.of(new BlockSource("1", node.location(), "1", blocks)),
        (source, wanted, sink) -> {
          throw new AssertionError("staged: " + wanted);
        },
        new Fetches.Listener() {},
        () -> false);
  }

  @Test
  void theLastRowOutlivesTheLeaseAndTheOthersAreReadInPlace() {
    write(1, "first ");
    UnsafeRow row = null;
    UTF8String text = null;
    int rows = 0;
    int onHeap = 0;
    try (Fetch fetcher = fetch(1)) {
      final UnsafeRowRecords records =
          new UnsafeRowRecords(new UnsafeRows(1, null), null, fetcher::hasMore);
      while (fetcher.next()) {
        final int partition = fetcher.block().block().partition();
        final Iterator<? extends Product2<?, ?>> iterator = records.of(fetcher.block());
        for (int i = 0; i < ROWS; i++) {
          assertThat(iterator.hasNext()).isTrue();
          row = (UnsafeRow) iterator.next()._2();
          text = row.getUTF8String(0);
          assertThat(text.toString()).isEqualTo("first " + partition + " " + i);
          onHeap += row.getBaseObject() == null ? 0 : 1;
          rows++;
        }
        assertThat(iterator.hasNext()).isFalse();
      }
    }
    assertThat(rows).isEqualTo(ROWS * PARTITIONS);
    assertThat(onHeap).as("rows that were copied").isEqualTo(1);
    assertThat(node.stats().leases().open()).isZero();
    node.unregisterShuffle(1);
    assertThat(TestNodes.retiredRegions(node)).as("regions that wait for the task").isZero();
    write(2, "second ");
    final String last = "first " + (PARTITIONS - 1) + " " + (ROWS - 1);
    assertThat(row.getString(0)).isEqualTo(last);
    assertThat(text.toString()).as("what points into the row").isEqualTo(last);
    node.unregisterShuffle(2);
  }

  @Test
  void bytesThatAreNoRowsFailTheFetchOfTheirBlock() {
    write(1, "first ");
    try (Fetch fetcher = fetch(1)) {
      assertThat(fetcher.next()).isTrue();
      final FetchedBlock block = fetcher.block();
      Platform.putInt(null, block.extentAddress(0), UnsafeRows.bigEndian(1 << 20));
      final Iterator<? extends Product2<?, ?>> rows =
          new UnsafeRowRecords(new UnsafeRows(1, null), null, fetcher::hasMore).of(block);
      assertThatThrownBy(rows::next)
          .isInstanceOfSatisfying(
              BlockFetchException.class,
              failure -> assertThat(failure.block()).isEqualTo(block.block()))
          .hasMessageContaining("of executor 1, path local")
          .hasMessageContaining("a row of 1048576 bytes");
    }
    node.unregisterShuffle(1);
  }

  private record Rows(UnsafeBuffer bytes, int[] ends) implements PackSource {
    @Override
    public int partitions() {
      return ends.length;
    }

    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      final int from = partition == 0 ? 0 : ends[partition - 1];
      consumer.extent(bytes.addressOffset() + from, ends[partition] - from);
    }
  }
}
