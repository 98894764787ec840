package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.device.BlockChecksums;
import io.zerohop.device.Message;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.checksum.RowHash;
import io.zerohop.spark.rapids.format.KudoLayout;
import io.zerohop.spark.rapids.format.KudoLayout.KudoBlock;
import io.zerohop.spark.rapids.write.TableBatch.TableSizes;
import io.zerohop.spark.rapids.write.TableSink.OutputBatch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;
import scala.Tuple2;

/**
 * A batch split into blocks of RAPIDS' serializer, one for each partition, adjacent in one buffer
 * on the GPU. RAPIDS carries it to the shuffle as one batch, with all rows and no columns, and
 * closes it. The shuffle {@linkplain #open opens} it. For one task's thread.
 */
public final class KudoBatch extends ColumnarBatch {
  private static final String REMEDY =
      "set spark.zerohop.rapids.kudo.enabled=false and report this";

  /** The most bytes that a map output says of a batch. */
  private static final long MAX_BYTES = Integer.MAX_VALUE;

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
  private KudoBatch(
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
   * Splits a batch that RAPIDS has partitioned by RAPIDS' GPU serializer (Kudo): by a few launches
   * and two allocations for any number of partitions. RAPIDS' split makes a table of its own of
   * each, with an allocation and metadata on the host. Does not wait for the GPU; {@link #open}
   * does.
   *
   * @param rows of the batch
   * @param starts first row of each partition; may have more
   * @param partitions how many there are
   * @param columns RAPIDS' columns, ordered by partition; closed unless null is returned
   * @return the batch, as RAPIDS returns its slices; null if it is not one for this
   */
  public static Tuple2<ColumnarBatch, Object> @Nullable [] split(
      final int rows, final int[] starts, final int partitions, final Object[] columns) {
    if (rows == 0 || columns.length == 0) {
      return null;
    }
    boolean refused = false;
    final KudoBatch batch;
    try {
      final int[] firstRows = Arrays.copyOf(starts, partitions + 1);
      firstRows[partitions] = rows;
      batch = split(RapidsClasses.get(), firstRows, columns);
      refused = batch == null;
    } finally {
      if (!refused) {
        close(columns);
      }
    }
    if (refused) {
      return null;
    }
    @SuppressWarnings("unchecked")
    final Tuple2<ColumnarBatch, Object>[] one =
        (Tuple2<ColumnarBatch, Object>[]) new Tuple2<?, ?>[] {new Tuple2<>(batch, 0)};
    return one;
  }

  private static @Nullable KudoBatch split(
      final RapidsClasses rapids, final int[] firstRows, final Object[] columns) {
    final ai.rapids.cudf.ColumnVector[] plain = new ai.rapids.cudf.ColumnVector[columns.length];
    for (int i = 0; i < columns.length; i++) {
      plain[i] = rapids.plainColumn(columns[i]);
      plain[i].getNullCount(); // The serializer takes it as known.
    }
    final int partitions = firstRows.length - 1;
    final DeviceMemoryBuffer[] split;
    try (Table table = new Table(plain)) {
      final int[] splits = Arrays.copyOfRange(firstRows, 1, partitions);
      split = rapids.withRetry(() -> KudoGpuSerializer.splitAndSerializeToDevice(table, splits));
    }
    KudoBatch batch = null;
    try {
      if (split[0].getLength() <= MAX_BYTES) {
        batch = new KudoBatch(split[0], split[1], firstRows, plain);
      }
      return batch;
    } finally {
      if (batch == null) {
        split[0].close();
        split[1].close();
      }
    }
  }

  private static void close(final Object[] columns) {
    for (final Object column : columns) {
      ((ColumnVector) column).close();
    }
  }

  /**
   * Waits until the batch is split, since the host has to know where blocks end, and gives the GPU
   * to other tasks then. The one wait of a batch: checksums are made before it.
   *
   * @param by the task's stream, which makes the blocks' checksums, if they get some
   * @param limit of these
   */
  void open(final RapidsClasses rapids, final @Nullable TaskStream by, final Duration limit) {
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
            : by.get()
                .checksums(blocks.getAddress(), ends.getAddress(), partitions, blocks.getLength());
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

    @Override
    public int partitions() {
      return of.layout().partitions();
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

  /**
   * Estimates the sizes of partitions as cudf's packed tables, from their rows and their sizes as
   * Kudo blocks. Map statuses and the metric {@code data size} say this, whatever the form, so that
   * plans are those of RAPIDS' own manager. Exact without strings and nested columns: each buffer
   * of a packed table takes a multiple of 64 bytes. Characters are what a block has beside its
   * other parts, and for nested columns half a multiple a buffer is added.
   *
   * @param widths bytes of a value of each column of fixed width
   * @param masks how many columns have a mask of nulls
   * @param strings how many are strings
   * @param nested how many are neither
   */
  public record KudoSizes(int[] widths, int masks, int strings, int nested) {
    private static final int ALIGNMENT = 64;
    private static final int BITS = Byte.SIZE;

    /** Of the header of a block that is always there; behind it is a bit for each column. */
    private static final int HEADER_BYTES = KudoBlock.FIXED_BYTES;

    /** Of columns; their counts of nulls are known. */
    public static KudoSizes of(final ai.rapids.cudf.ColumnVector[] columns) {
      final int[] widths = new int[columns.length];
      int fixed = 0;
      int masks = 0;
      int strings = 0;
      int nested = 0;
      for (final ai.rapids.cudf.ColumnVector column : columns) {
        final DType type = column.getType();
        if (type.isNestedType()) {
          nested++;
        } else if (type.equals(DType.STRING)) {
          strings++;
        } else {
          widths[fixed++] = type.getSizeInBytes();
        }
        if (column.hasValidityVector()) {
          masks++;
        }
      }
      return new KudoSizes(Arrays.copyOf(widths, fixed), masks, strings, nested);
    }

    /** Of each partition. */
    public long[] packed(final KudoLayout layout) {
      final long[] sizes = new long[layout.partitions()];
      for (int partition = 0; partition < sizes.length; partition++) {
        final int rows = layout.rows(partition);
        sizes[partition] = rows == 0 ? 0 : packed(rows, layout.bytes(partition));
      }
      return sizes;
    }

    /** Of so many rows, and a block of so many bytes. */
    private long packed(final long rows, final long block) {
      final long mask = (rows + BITS - 1) / BITS;
      final long offsets = Integer.BYTES * (rows + 1);
      final int columns = widths.length + strings + nested;
      long rest = block - HEADER_BYTES - (columns + BITS - 1) / BITS - masks * mask;
      long packed = masks * padded(mask);
      for (final int width : widths) {
        rest -= rows * width;
        packed += padded(rows * width);
      }
      rest = Math.max(0, rest - strings * offsets);
      packed += strings * padded(offsets);
      if (nested > 0) {
        return packed + rest + (strings + 2L * nested) * ALIGNMENT / 2;
      }
      return strings == 0 ? packed : packed + padded(rest) + (strings - 1L) * ALIGNMENT / 2;
    }

    private static long padded(final long bytes) {
      return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
    }
  }
}
