import ai.rapids.cudf.ChunkedPack;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.PartitionedTable;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.RmmAllocationMode;
import ai.rapids.cudf.Scalar;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

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
            new String[] {"partition", "contiguous_split", "chunked_pack", "kudo_split", "kudo_assemble"}) {
          final SplitForms form = new SplitForms(columns, partitions, step);
          if (!form.takesTooLong() && System.nanoTime() < end) {
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
}
