package io.zerohop.spark.rows;

import io.zerohop.shuffle.fetch.FetchedBlock;
import java.util.NoSuchElementException;
import java.util.function.BooleanSupplier;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * SQL rows in place: one row object, pointed at the mapped bytes of each row in turn. As with
 * Spark's own serializer a row is valid until the next one is asked for; whoever keeps it copies
 * it. The last of all rows stays valid, and with it what points into it, so that one is copied; the
 * mappings are not needed any more then, however long the task goes on. Staged blocks have no
 * mapped bytes and go through the serializer.
 */
final class UnsafeRowRecords implements BlockRecords {
  private final UnsafeRow row;
  private final Tuple2<Object, Object> pair;
  private final BlockRecords staged;
  private final BooleanSupplier hasMore;

  /**
   * @param staged reads blocks that have no mapped bytes
   * @param hasMore whether there are blocks behind the one that was asked for last
   */
  UnsafeRowRecords(
      final UnsafeRows codec, final BlockRecords staged, final BooleanSupplier hasMore) {
    this.row = new UnsafeRow(codec.numFields());
    this.pair = new Tuple2<>(0, row);
    this.staged = staged;
    this.hasMore = hasMore;
  }

  @Override
  public Iterator<? extends Product2<?, ?>> of(final FetchedBlock block) {
    return block.extentCount() == 0 ? staged.of(block) : new InPlace(block);
  }

  private final class InPlace extends AbstractIterator<Product2<?, ?>> {
    private final FetchedBlock block;
    private final int extents;
    private final boolean last;
    private int extent;
    private long at;
    private long end;

    InPlace(final FetchedBlock block) {
      this.block = block;
      this.extents = block.extentCount();
      this.last = !hasMore.getAsBoolean();
    }

    @Override
    public boolean hasNext() {
      while (at == end && extent < extents) {
        at = block.extentAddress(extent);
        end = at + block.extentLength(extent);
        extent++;
      }
      return at != end;
    }

    @Override
    public Product2<?, ?> next() {
      if (!hasNext()) {
        throw new NoSuchElementException(block.block().toString());
      }
      final long left = end - at - Integer.BYTES;
      final int size = left < 0 ? -1 : UnsafeRows.bigEndian(Platform.getInt(null, at));
      if (size < 0 || size > left) {
        throw new DamagedBlockException(block, "a row of " + size + " bytes, " + left + " left");
      }
      final long bytes = at + Integer.BYTES;
      at = bytes + size;
      if (last && !hasNext()) {
        row.pointTo(copy(bytes, size), Platform.BYTE_ARRAY_OFFSET, size);
      } else {
        row.pointTo(null, bytes, size);
      }
      return pair;
    }

    private byte[] copy(final long address, final int size) {
      final byte[] copy = new byte[size];
      Platform.copyMemory(null, address, copy, Platform.BYTE_ARRAY_OFFSET, size);
      return copy;
    }
  }
}
