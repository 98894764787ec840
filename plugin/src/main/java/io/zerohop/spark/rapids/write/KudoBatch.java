package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Message;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutputWriter.PackSource;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.checksum.RowHash;
import io.zerohop.spark.rapids.format.KudoLayout;
import io.zerohop.spark.rapids.write.KudoSplit.KudoSizes;
import io.zerohop.spark.rapids.write.TableBatch.TableSizes;
import io.zerohop.spark.rapids.write.TableSink.OutputBatch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * A batch split into blocks of RAPIDS' serializer, one for each partition, adjacent in one buffer
 * on the GPU. RAPIDS carries it to the shuffle as one batch, with all rows and no columns, and
 * closes it. The shuffle {@linkplain #open opens} it. For one task's thread.
 */
public final class KudoBatch extends ColumnarBatch {
  private static final String REMEDY =
      "set spark.zerohop.rapids.kudo.enabled=false and report this";

  private final DeviceMemoryBuffer blocks;
  private final int[] firstRows;
  private final KudoSizes columnSizes;

  /** Where each block begins, and where the last one ends, on the GPU; closed once it is read. */
  private @Nullable DeviceMemoryBuffer offsets;

  /** Absent until {@link #open}. */
  private @Nullable Opened opened;

  /** The rows as they were before the split, for their checksum; none after {@link #hash}. */
  private ai.rapids.cudf.ColumnVector[] unsplit;

  private boolean closed;

  /**
   * The sizes and checksums of a batch after its split.
   *
   * @param packed what each partition would take as a packed table
   * @param checksums CRC32C of each partition's block, if they are known
   */
  private record Opened(KudoLayout layout, long[] packed, int @Nullable [] checksums) {}

  /**
   * @param blocks owned from now on
   * @param offsets owned from now on
   * @param firstRows first row of each partition, and how many rows there are
   * @param unsplit the rows before the split; a reference on each is taken
   */
  KudoBatch(
      final DeviceMemoryBuffer blocks,
      final DeviceMemoryBuffer offsets,
      final int[] firstRows,
      final ai.rapids.cudf.ColumnVector[] unsplit) {
    super(new ColumnVector[0], firstRows[firstRows.length - 1]);
    this.blocks = blocks;
    this.offsets = offsets;
    this.firstRows = firstRows;
    this.columnSizes = KudoSizes.of(unsplit);
    this.unsplit = unsplit;
    for (final ai.rapids.cudf.ColumnVector column : unsplit) {
      column.incRefCount();
    }
  }

  /**
   * Waits until the batch is split, since the host has to know where blocks end, and gives the GPU
   * to other tasks then. The one wait of a batch: checksums are made before it.
   *
   * @param by the thread's stream, which makes the blocks' checksums, if they get some
   * @param limit of these
   */
  void open(final RapidsClasses rapids, final @Nullable CopyStream by, final Duration limit) {
    final DeviceMemoryBuffer ends = Objects.requireNonNull(offsets, "a batch is opened once");
    final int partitions = firstRows.length - 1;
    final long bytes = Long.BYTES * (partitions + 1L);
    if (ends.getLength() != bytes) {
      throw new UnusableException(
          Message.of(
                  "RAPIDS' serializer gave "
                      + ends.getLength()
                      + " bytes of offsets for "
                      + partitions
                      + " partitions")
              .remedy(REMEDY));
    }
    final BlockChecksums sums =
        by == null || partitions > BlockChecksums.MAX_BLOCKS
            ? null
            : by.checksums(blocks.getAddress(), ends.getAddress(), partitions, blocks.getLength());
    final KudoLayout layout = new KudoLayout(firstRows, starts(rapids, ends, partitions));
    int[] checksums = null;
    if (by != null && sums != null) {
      by.synchronize(limit);
      checksums = sums.values(i -> layout.starts()[i]);
    }
    opened = new Opened(layout, columnSizes.packed(layout), checksums);
    ends.close();
    offsets = null;
    rapids.releaseSemaphore(TaskContext.get());
  }

  private int[] starts(
      final RapidsClasses rapids, final DeviceMemoryBuffer ends, final int partitions) {
    final int[] starts = new int[partitions + 1];
    try (HostMemoryBuffer copy =
        rapids.withRetry(() -> HostMemoryBuffer.allocate(ends.getLength()))) {
      copy.copyFromDeviceBuffer(ends);
      for (int i = 0; i <= partitions; i++) {
        starts[i] = (int) Platform.getLong(null, copy.getAddress() + (long) Long.BYTES * i);
        if (starts[i] < (i == 0 ? 0 : starts[i - 1]) || starts[i] > blocks.getLength()) {
          throw new UnusableException(
              Message.of("RAPIDS' serializer gave blocks that overlap").remedy(REMEDY));
        }
      }
    }
    return starts;
  }

  /**
   * Launches the hash of the rows, and frees them behind it in the order of the thread's stream.
   *
   * @param hash of the map output, if it reports a checksum
   */
  void hash(final @Nullable RowHash hash) {
    try {
      if (hash != null) {
        hash.add(unsplit, firstRows);
        hash.launch();
      }
    } finally {
      closeColumns();
    }
  }

  private void closeColumns() {
    for (final ai.rapids.cudf.ColumnVector column : unsplit) {
      column.close();
    }
    unsplit = new ai.rapids.cudf.ColumnVector[0];
  }

  private Opened opened() {
    return Objects.requireNonNull(opened, "the batch is not open");
  }

  KudoLayout layout() {
    return opened().layout;
  }

  /** CRC32C of each partition's block; null if they are not known. */
  int @Nullable [] checksums() {
    return opened().checksums;
  }

  /** The memory of the blocks, which the batch keeps. */
  DeviceMemoryBuffer blocks() {
    return blocks;
  }

  /** Where that is on the GPU. */
  long address() {
    return blocks.getAddress();
  }

  /** All blocks, in slices of up to so many bytes, or of one block if that has more. */
  List<KudoSlice> slices(final long most) {
    final List<KudoSlice> slices = new ArrayList<>();
    for (final int[] range : layout().ranges(most)) {
      slices.add(new KudoSlice(this, range[0], range[1]));
    }
    return slices;
  }

  /** Adds up what map statuses say of partitions. */
  public void addSizes(final TableSizes sizes) {
    final Opened known = opened();
    for (int partition = 0; partition < known.packed.length; partition++) {
      if (known.layout.rows(partition) > 0) {
        sizes.add(partition, known.packed[partition]);
      }
    }
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      closeColumns();
      blocks.close();
      if (offsets != null) {
        offsets.close();
      }
    }
  }

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
}
