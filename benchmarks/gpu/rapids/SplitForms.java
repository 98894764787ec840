import ai.rapids.cudf.ChunkedPack;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.DeviceMemoryBufferView;
import ai.rapids.cudf.PartitionedTable;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.RmmAllocationMode;
import ai.rapids.cudf.Scalar;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.cuda.CudaDevice;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.spark.unsafe.Platform;

/**
 * Times the forms in which a batch could go to a shuffle, several tasks at a time on one GPU, in
 * RAPIDS' default pool: SplitForms TASKS SECONDS. Writes a line of JSON for each form, with the
 * milliseconds a batch of the slowest task, partitioning among them. What would begin after so many
 * seconds is left out.
 */
public final class SplitForms {
  private static final int ROUNDS = 6;
  private static final int WARM_UPS = 2;
  private static final long PACKED_BYTES = 256L << 20;
  private static final long POOL_BYTES = 60L << 30;
  private static final int WAIT_SECONDS = 60;

  private final String columns;
  private final int partitions;
  private final String step;

  private SplitForms(final String columns, final int partitions, final String step) {
    this.columns = columns;
    this.partitions = partitions;
    this.step = step;
  }

  public static void main(final String[] arguments) throws Exception {
    Rmm.initialize(RmmAllocationMode.CUDA_ASYNC, null, POOL_BYTES);
    final int tasks = Integer.parseInt(arguments[0]);
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[1]));
    for (final String columns : new String[] {"longs", "strings", "nulls", "nested", "hundred"}) {
      for (final int partitions : new int[] {64, 200, 2000, 10000}) {
        for (final String step :
            new String[] {"partition", "contiguous_split", "chunked_pack", "kudo_split", "kudo_assemble", "own_write", "own_read"}) {
          final SplitForms form = new SplitForms(columns, partitions, step);
          if (!form.takesTooLong() && form.isKnown() && System.nanoTime() < end) {
            System.out.printf(
                Locale.ROOT, "{\"columns\": \"%s\", \"partitions\": %d, \"step\": \"%s\", \"rows\": %d, \"tasks\": %d, \"ms\": %.2f}%n",
                columns, partitions, step, form.rows(), tasks, form.slowest(tasks));
          }
        }
      }
    }
    System.exit(0); // cudf's threads would go on.
  }

  /** RAPIDS' split takes seconds a batch with many partitions. */
  private boolean takesTooLong() {
    return step.equals("contiguous_split") && (partitions > 2000 || partitions == 2000 && !columns.equals("longs"));
  }

  /** The own form is tried with columns of fixed width and strings, without nulls. */
  private boolean isKnown() {
    return !step.startsWith("own") || columns.matches("longs|strings|hundred");
  }

  private int rows() {
    return columns.equals("hundred") ? 40_000 : 400_000;
  }

  private double slowest(final int tasks) throws Exception {
    final ExecutorService pool = Executors.newFixedThreadPool(tasks);
    final CyclicBarrier together = new CyclicBarrier(tasks);
    final List<Future<Double>> times = new ArrayList<>();
    for (int i = 0; i < tasks; i++) {
      times.add(pool.submit(() -> millis(together)));
    }
    double slowest = 0;
    for (final Future<Double> time : times) {
      slowest = Math.max(slowest, time.get(WAIT_SECONDS, TimeUnit.SECONDS));
    }
    pool.shutdownNow();
    return slowest;
  }

  private double millis(final CyclicBarrier together) throws Exception {
    Cuda.setDevice(0);
    try (Table table = table();
        ColumnVector partition = partitionOfRows();
        DeviceMemoryBuffer packed = DeviceMemoryBuffer.allocate(PACKED_BYTES)) {
      if (step.startsWith("own")) {
        try (OwnForm own = new OwnForm(packed)) {
          return millis(together, table, partition, own);
        }
      }
      final Schema schema = schema(table);
      DeviceMemoryBuffer[] blocks = {};
      if (step.equals("kudo_assemble")) {
        try (PartitionedTable parts = table.partition(partition, partitions)) {
          blocks = KudoGpuSerializer.splitAndSerializeToDevice(parts.getTable(), splits(parts));
        }
      }
      long begin = 0;
      for (int round = -WARM_UPS; round < ROUNDS; round++) {
        if (round == 0) {
          together.await(WAIT_SECONDS, TimeUnit.SECONDS);
          begin = System.nanoTime();
        }
        if (blocks.length > 0) {
          KudoGpuSerializer.assembleFromDeviceRaw(schema, blocks[0], blocks[1]).close();
        } else {
          split(table, partition, packed);
        }
        Cuda.DEFAULT_STREAM.sync();
      }
      final double millis = (System.nanoTime() - begin) / 1e6 / ROUNDS;
      for (final DeviceMemoryBuffer block : blocks) {
        block.close();
      }
      return millis;
    }
  }

  private double millis(
      final CyclicBarrier together, final Table table, final ColumnVector partition, final OwnForm own)
      throws Exception {
    own.checkOnce(table, partition, partitions);
    long begin = 0;
    for (int round = -WARM_UPS; round < ROUNDS; round++) {
      if (round == 0) {
        together.await(WAIT_SECONDS, TimeUnit.SECONDS);
        begin = System.nanoTime();
      }
      if (step.equals("own_read")) {
        own.read().close();
      } else {
        try (PartitionedTable parts = table.partition(partition, partitions)) {
          own.write(parts);
        }
      }
      Cuda.DEFAULT_STREAM.sync();
    }
    return (System.nanoTime() - begin) / 1e6 / ROUNDS;
  }

  private void split(final Table table, final ColumnVector partition, final DeviceMemoryBuffer packed) {
    try (PartitionedTable parts = table.partition(partition, partitions)) {
      switch (step) {
        case "contiguous_split" -> {
          for (final ContiguousTable part : parts.getTable().contiguousSplit(splits(parts))) {
            part.close();
          }
        }
        case "chunked_pack" -> {
          try (ChunkedPack pack = parts.getTable().makeChunkedPack(PACKED_BYTES)) {
            while (pack.hasNext()) {
              pack.next(packed);
            }
          }
        }
        case "kudo_split" -> {
          for (final DeviceMemoryBuffer part :
              KudoGpuSerializer.splitAndSerializeToDevice(parts.getTable(), splits(parts))) {
            part.close();
          }
        }
        default -> { } // Partitioned, and no more.
      }
    }
  }

  private int[] splits(final PartitionedTable parts) {
    return Arrays.copyOfRange(parts.getPartitions(), 1, partitions);
  }

  private ColumnVector partitionOfRows() {
    try (Scalar one = Scalar.fromLong(1);
        Scalar prime = Scalar.fromLong(2654435761L);
        Scalar count = Scalar.fromLong(partitions);
        ColumnVector ids = ColumnVector.sequence(one, one, rows());
        ColumnVector hashes = ids.mul(prime)) {
      return hashes.binaryOp(ai.rapids.cudf.BinaryOp.PMOD, count, DType.INT32);
    }
  }

  private Table table() {
    final List<ColumnVector> made = new ArrayList<>();
    try (Scalar first = Scalar.fromLong(7);
        Scalar one = Scalar.fromLong(1);
        ColumnVector ids = ColumnVector.sequence(first, one, rows())) {
      for (int i = 0; i < (columns.equals("hundred") ? 100 : 8); i++) {
        made.add(columns.equals("nulls") ? withNulls(ids) : ids.incRefCount());
      }
      for (int i = 0; i < 2 && columns.matches("strings|nested"); i++) {
        made.add(columns.equals("nested") ? nested(ids) : ids.asStrings());
      }
      return new Table(made.toArray(new ColumnVector[0]));
    } finally {
      made.forEach(ColumnVector::close);
    }
  }

  /** Three of ten are null, in stretches. */
  private static ColumnVector withNulls(final ColumnVector ids) {
    try (Scalar stretch = Scalar.fromLong(1009);
        Scalar most = Scalar.fromLong(300);
        Scalar none = Scalar.fromNull(DType.INT64);
        ColumnVector place = ids.mod(stretch);
        ColumnVector isNull = place.lessThan(most)) {
      return isNull.ifElse(none, ids);
    }
  }

  /** Lists of two structs of a string and a number. */
  private static ColumnVector nested(final ColumnVector ids) {
    try (ColumnVector text = ids.asStrings();
        ColumnVector struct = ColumnVector.makeStruct(text, ids)) {
      return ColumnVector.makeList(struct, struct);
    }
  }

  private static Schema schema(final Table table) {
    final Schema.Builder schema = Schema.builder();
    for (int i = 0; i < table.getNumberOfColumns(); i++) {
      add(schema, table.getColumn(i), i);
    }
    return schema.build();
  }

  private static void add(final Schema.Builder to, final ColumnView column, final int index) {
    final Schema.Builder added = to.addColumn(column.getType(), "c" + index);
    for (int i = 0; i < column.getNumChildren(); i++) {
      try (ColumnView child = column.getChildColumnView(i)) {
        add(added, child, i);
      }
    }
  }

  /**
   * A block of a partition is a row range of every column: values, ends of strings, characters. A
   * table is written by copies of ranges into one region, and read by copies back, through the copy
   * kernels that Zerohop has. One wait for the host when strings are written, none otherwise.
   */
  private static final class OwnForm implements AutoCloseable {
    private static final CudaDevice DEVICE = new CudaDevice(0, Integer.getInteger("sms", 24));
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final MethodHandle DATA = data();

    private final DeviceMemoryBuffer region;
    private final CopyStream stream = DEVICE.openThreadStream("own form");
    private final HostBuffer counts = DEVICE.hostBuffer(4 << 20);
    private boolean[] strings;
    private int[] first;

    /** Characters before each partition, by column of strings. */
    private int[][] ends;

    /** Where each column of each partition lies in the region. */
    private long[][] places;

    private int partitions;

    OwnForm(final DeviceMemoryBuffer region) {
      this.region = region;
    }

    private static MethodHandle data() {
      try {
        return MethodHandles.privateLookupIn(ColumnView.class, MethodHandles.lookup())
            .findStatic(ColumnView.class, "getNativeDataAddress", MethodType.methodType(long.class, long.class));
      } catch (final ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
    }

    private static long address(final ColumnVector column) {
      try {
        return (long) DATA.invokeExact(column.getNativeView());
      } catch (final Throwable e) {
        throw new IllegalStateException(e);
      }
    }

    void checkOnce(final Table table, final ColumnVector partition, final int count) {
      try (PartitionedTable parts = table.partition(partition, count)) {
        write(parts);
        try (Table back = read()) {
          for (int i = 0; i < back.getNumberOfColumns(); i++) {
            try (ColumnVector same = back.getColumn(i).equalTo(parts.getTable().getColumn(i));
                Scalar all = same.all()) {
              if (back.getRowCount() != parts.getTable().getRowCount() || !all.getBoolean()) {
                throw new IllegalStateException("column " + i + " is not what was written");
              }
            }
          }
        }
      }
    }

    void write(final PartitionedTable parts) {
      final Table table = parts.getTable();
      final int columns = table.getNumberOfColumns();
      partitions = parts.getPartitions().length;
      first = Arrays.copyOf(parts.getPartitions(), partitions + 1);
      first[partitions] = (int) table.getRowCount();
      strings = new boolean[columns];
      ends = new int[columns][];
      places = new long[columns][partitions];
      final CopyBatch bounds = stream.newBatch();
      for (int i = 0; i < columns; i++) {
        strings[i] = table.getColumn(i).getType().equals(DType.STRING);
        if (strings[i]) {
          final long offsets = table.getColumn(i).getOffsets().getAddress();
          for (int p = 0; p <= partitions; p++) {
            bounds.add(offsets + 4L * first[p], counts.address() + 4L * ((long) i * (partitions + 1) + p), 4);
          }
        }
      }
      if (bounds.size() > 0) {
        stream.submit(bounds);
        stream.synchronize(LIMIT);
      }
      final CopyBatch copy = stream.newBatch();
      final SpliceBatch splice = new SpliceBatch();
      final long[] data = new long[columns];
      final long[] offsets = new long[columns];
      for (int i = 0; i < columns; i++) {
        data[i] = address(table.getColumn(i));
        if (strings[i]) {
          offsets[i] = table.getColumn(i).getOffsets().getAddress();
          ends[i] = new int[partitions + 1];
          for (int p = 0; p <= partitions; p++) {
            ends[i][p] = Platform.getInt(null, counts.address() + 4L * ((long) i * (partitions + 1) + p));
          }
        }
      }
      long at = region.getAddress();
      for (int p = 0; p < partitions; p++) {
        final int rows = first[p + 1] - first[p];
        for (int i = 0; i < columns; i++) {
          places[i][p] = at;
          if (strings[i]) {
            splice.addOffsets(offsets[i] + 4L * (first[p] + 1), at, rows, -ends[i][p]);
            at += (4L * rows + 7) & -8;
            final int bytes = ends[i][p + 1] - ends[i][p];
            copy.add(data[i] + ends[i][p], at, bytes);
            at += (bytes + 7L) & -8;
          } else {
            copy.add(data[i] + 8L * first[p], at, 8L * rows);
            at += 8L * rows;
          }
        }
      }
      if (at - region.getAddress() > region.getLength()) {
        throw new IllegalStateException("the region is too small");
      }
      stream.submit(copy);
      stream.submit(splice);
    }

    Table read() {
      final int columns = places.length;
      final int rows = first[partitions];
      final long[] data = new long[columns];
      final long[] offsets = new long[columns];
      long bytes = 0;
      for (int i = 0; i < columns; i++) {
        data[i] = bytes;
        bytes += (strings[i] ? ends[i][partitions] - ends[i][0] : 8L * rows) + 63 & -64;
        offsets[i] = bytes;
        bytes += strings[i] ? 4L * (rows + 1) + 63 & -64 : 0;
      }
      final CopyBatch copy = stream.newBatch();
      final SpliceBatch splice = new SpliceBatch();
      Platform.putInt(null, counts.address(), 0);
      final ColumnVector[] made = new ColumnVector[columns];
      try (DeviceMemoryBuffer whole = DeviceMemoryBuffer.allocate(bytes)) {
        final long to = whole.getAddress();
        for (int i = 0; i < columns; i++) {
          if (strings[i]) {
            copy.add(counts.address(), to + offsets[i], 4);
          }
        }
        for (int p = 0; p < partitions; p++) {
          final int count = first[p + 1] - first[p];
          for (int i = 0; i < columns; i++) {
            if (strings[i]) {
              final int before = ends[i][p] - ends[i][0];
              splice.addOffsets(places[i][p], to + offsets[i] + 4L * (first[p] + 1), count, before);
              copy.add(places[i][p] + ((4L * count + 7) & -8), to + data[i] + before, ends[i][p + 1] - ends[i][p]);
            } else {
              copy.add(places[i][p], to + data[i] + 8L * first[p], 8L * count);
            }
          }
        }
        stream.submit(copy);
        stream.submit(splice);
        for (int i = 0; i < columns; i++) {
          final long length = strings[i] ? ends[i][partitions] - ends[i][0] : 8L * rows;
          final ColumnView view =
              new ColumnView(
                  strings[i] ? DType.STRING : DType.INT64,
                  rows,
                  Optional.of(0L),
                  new DeviceMemoryBufferView(to + data[i], length),
                  null,
                  strings[i] ? new DeviceMemoryBufferView(to + offsets[i], 4L * (rows + 1)) : null);
          made[i] = ColumnVector.fromViewWithContiguousAllocation(view.getNativeView(), whole);
        }
        return new Table(made);
      } finally {
        for (final ColumnVector column : made) {
          if (column != null) {
            column.close();
          }
        }
      }
    }

    @Override
    public void close() {
      stream.close();
      counts.close();
    }
  }
}
