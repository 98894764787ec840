package io.zerohop.spark.rapids.write;

import io.zerohop.shuffle.extent.ExtentConsumer;
import io.zerohop.shuffle.write.PackSource;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Consecutive partitions of a batch that form one region, as large as a pack of tables, so that
 * pools are filled well. For the batch's thread; owns nothing.
 *
 * @param of the batch
 * @param first of its partitions
 * @param end behind the last one
 */
public record KudoSlice(KudoBatch of, int first, int end) implements OutputBatch {

  @Override
  public boolean isEmpty() {
    return bytes() == 0;
  }

  @Override
  public long bytes() {
    return of.layout().bytes(first, end);
  }

  /** None: blocks describe themselves. */
  @Override
  public @Nullable PackSource headers() {
    return null;
  }

  @Override
  public PackSource payload() {
    return new PackSource() {
      @Override
      public int partitions() {
        return of.layout().partitions();
      }

      @Override
      public boolean onDevice() {
        return true;
      }

      @Override
      public boolean hasChecksums() {
        return of.checksums() != null;
      }

      @Override
      public int checksum(final int partition) {
        return Objects.requireNonNull(of.checksums(), "hasChecksums")[partition];
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        final int bytes = of.layout().bytes(partition);
        if (partition >= first && partition < end && bytes > 0) {
          consumer.extent(of.address() + of.layout().starts()[partition], bytes);
        }
      }
    };
  }

  @Override
  public long[] layOut(final long address, final Placing placing) {
    return of.layout()
        .layOut(
            first,
            end,
            address,
            (offset, at, bytes) -> placing.place(of.blocks(), offset, at, bytes));
  }
}
