package io.zerohop.spark.rows;

import io.zerohop.shuffle.fetch.FetchedBlock;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * SQL rows in place: one row object, pointed at the mapped bytes of each row in turn. As with
 * Spark's own serializer a row is valid until the next one is asked for; whoever keeps it copies
 * it. Staged blocks have no mapped bytes and go through the serializer.
 */
final class UnsafeRowRecords implements BlockRecords {
  private final UnsafeRow row;
  private final Tuple2<Object, Object> pair;
  private final BlockRecords staged;

  UnsafeRowRecords(final UnsafeRows codec, final BlockRecords staged) {
    this.row = new UnsafeRow(codec.numFields());
    this.pair = new Tuple2<>(0, row);
    this.staged = staged;
  }

  @Override
  public Iterator<? extends Product2<?, ?>> of(final FetchedBlock block) {
    return block.extentCount() == 0 ? staged.of(block) : new InPlace(block);
  }

  private final class InPlace extends AbstractIterator<Product2<?, ?>> {
    private final FetchedBlock block;
    private final int extents;
    private int extent;
    private long at;
    private long end;

    InPlace(final FetchedBlock block) {
      this.block = block;
      this.extents = block.extentCount();
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
      row.pointTo(null, at + Integer.BYTES, size);
      at += Integer.BYTES + size;
      return pair;
    }
  }
}
