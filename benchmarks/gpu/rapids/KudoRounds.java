import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostColumnVector;
import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.ColumnBuilder;
import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.ListType;
import ai.rapids.cudf.HostColumnVector.StructData;
import ai.rapids.cudf.HostColumnVector.StructType;
import ai.rapids.cudf.HostColumnVectorCore;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.RmmAllocationMode;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Splits random tables by RAPIDS' GPU serializer, puts some of the blocks together again in one
 * table, and compares that, row by row on the host, with what went in: KudoRounds TASKS SECONDS SEED
 * ROUNDS. Ends with status 1 if anything differs; a seed that it names does the same again.
 */
public final class KudoRounds {
  private static final DType[] FIXED = {
    DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL8, DType.FLOAT32, DType.FLOAT64,
    DType.TIMESTAMP_DAYS, DType.TIMESTAMP_MICROSECONDS, DType.create(DType.DTypeEnum.DECIMAL32, -2),
    DType.create(DType.DTypeEnum.DECIMAL64, -3), DType.create(DType.DTypeEnum.DECIMAL128, -4)
  };
  private static final double[] NULLS = {0, 0, 0.1, 0.5, 1};
  private static final int STRETCH = 40;
  private static final int MAX_WRONG = 5;
  private static final long POOL_BYTES = 20L << 30;

  private final Random random;
  private final boolean isLong;
  private final DataType[] types;
  private final List<DeviceMemoryBuffer> split = new ArrayList<>();
  private final List<Block> picked = new ArrayList<>();
  private final List<String> expected = new ArrayList<>();

  /** A block of one of the tables. */
  private record Block(DeviceMemoryBuffer of, long offset, long bytes) {}

  private KudoRounds(final long seed) {
    random = new Random(seed * 7919);
    // Long ones go through the serializer's loops more than once.
    isLong = random.nextInt(50) == 0;
    final boolean wide = !isLong && random.nextInt(8) == 0;
    types = new DataType[wide ? 20 + random.nextInt(80) : 1 + random.nextInt(6)];
    for (int i = 0; i < types.length; i++) {
      types[i] = type(wide ? 2 : 0);
    }
  }

  public static void main(final String[] arguments) throws Exception {
    Rmm.initialize(RmmAllocationMode.CUDA_ASYNC, null, POOL_BYTES);
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[1]));
    final long first = Long.parseLong(arguments[2]);
    final long most = Long.parseLong(arguments[3]);
    final AtomicLong next = new AtomicLong(first);
    final AtomicLong blocks = new AtomicLong();
    final AtomicLong rounds = new AtomicLong();
    final AtomicInteger wrong = new AtomicInteger();
    final Runnable task = () -> {
      Cuda.setDevice(0);
      for (long seed = next.getAndIncrement();
          seed - first < most && System.nanoTime() < end && wrong.get() < MAX_WRONG;
          seed = next.getAndIncrement()) {
        try {
          blocks.addAndGet(new KudoRounds(seed).run());
          rounds.incrementAndGet();
        } catch (final Exception | AssertionError e) {
          wrong.incrementAndGet();
          System.err.println("seed " + seed + ": " + e);
        }
      }
    };
    final Thread[] tasks = new Thread[Integer.parseInt(arguments[0])];
    for (int i = 0; i < tasks.length; i++) {
      tasks[i] = new Thread(task);
      tasks[i].start();
    }
    for (final Thread one : tasks) {
      one.join();
    }
    System.out.printf(Locale.ROOT, "{\"rounds\": %d, \"blocks\": %d, \"wrong\": %d, \"tasks\": %d}%n", rounds.get(), blocks.get(), wrong.get(), tasks.length);
    System.exit(wrong.get() == 0 ? 0 : 1); // cudf's threads would go on.
  }

  /** One round; returns of how many blocks. */
  private int run() {
    try {
      for (int table = random.nextInt(4); table >= 0; table--) {
        final int most = isLong ? 300_000 : random.nextInt(6) == 0 ? 3 : 600;
        splitTable(1 + random.nextInt(most));
      }
      if (!picked.isEmpty()) {
        putTogether();
      }
      return picked.size();
    } finally {
      split.forEach(DeviceMemoryBuffer::close);
    }
  }

  private void splitTable(final int rows) {
    final ColumnVector[] columns = new ColumnVector[types.length];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = column(types[i], rows);
    }
    final int partitions = 1 + random.nextInt(isLong ? 3 : random.nextBoolean() ? 8 : 300);
    final int[] splits = random.ints(partitions - 1, 0, rows + 1).sorted().toArray();
    try (Table table = new Table(columns)) {
      final String[] in = rows(table);
      final DeviceMemoryBuffer[] made = KudoGpuSerializer.splitAndSerializeToDevice(table, splits);
      split.add(made[0]);
      try (DeviceMemoryBuffer offsets = made[1]; HostMemoryBuffer ends = HostMemoryBuffer.allocate(offsets.getLength())) {
        ends.copyFromDeviceBuffer(offsets);
        for (int i = 0; i < partitions; i++) {
          final int from = i == 0 ? 0 : splits[i - 1];
          final int to = i == partitions - 1 ? rows : splits[i];
          if (from < to && (partitions < 3 || random.nextInt(3) > 0)) {
            final long at = ends.getLong((long) Long.BYTES * i);
            picked.add(new Block(made[0], at, ends.getLong(Long.BYTES * (i + 1L)) - at));
            expected.addAll(Arrays.asList(in).subList(from, to));
          }
        }
      }
    } finally {
      for (final ColumnVector column : columns) {
        column.close();
      }
    }
  }

  private void putTogether() {
    final long bytes = picked.stream().mapToLong(Block::bytes).sum();
    final long list = Long.BYTES * (picked.size() + 1L);
    try (DeviceMemoryBuffer blocks = DeviceMemoryBuffer.allocate(bytes);
        DeviceMemoryBuffer ends = DeviceMemoryBuffer.allocate(list);
        HostMemoryBuffer host = HostMemoryBuffer.allocate(list)) {
      long at = 0;
      for (int i = 0; i < picked.size(); i++) {
        final Block block = picked.get(i);
        host.setLong((long) Long.BYTES * i, at);
        try (DeviceMemoryBuffer from = block.of.slice(block.offset, block.bytes)) {
          blocks.copyFromDeviceBufferAsync(at, from, 0, block.bytes, Cuda.DEFAULT_STREAM);
        }
        at += block.bytes;
      }
      host.setLong((long) Long.BYTES * picked.size(), at);
      ends.copyFromHostBuffer(host);
      try (Table whole = KudoGpuSerializer.assembleFromDeviceRaw(schema(), blocks, ends)) {
        compare(rows(whole));
      }
    }
  }

  private void compare(final String[] found) {
    if (found.length != expected.size()) {
      throw new AssertionError(found.length + " rows instead of " + expected.size());
    }
    for (int i = 0; i < found.length; i++) {
      if (!found[i].equals(expected.get(i))) {
        throw new AssertionError("row " + i + " is " + found[i] + " instead of " + expected.get(i));
      }
    }
  }

  private DataType type(final int depth) {
    final int kind = random.nextInt(depth >= 3 ? 6 : 10);
    if (kind < 6) {
      return new BasicType(true, kind == 0 ? DType.STRING : FIXED[random.nextInt(FIXED.length)]);
    }
    if (kind < 8) {
      return new ListType(true, type(depth + 1));
    }
    final DataType[] members = new DataType[1 + random.nextInt(3)];
    for (int i = 0; i < members.length; i++) {
      members[i] = type(depth + 1);
    }
    return new StructType(true, members);
  }

  /** Nulls in some stretches only, so that some blocks have none and some nothing else. */
  private ColumnVector column(final DataType type, final int rows) {
    final double[] nulls = random.ints(1 + rows / STRETCH, 0, NULLS.length).mapToDouble(i -> NULLS[i]).toArray();
    try (ColumnBuilder builder = new ColumnBuilder(type, rows)) {
      for (int i = 0; i < rows; i++) {
        append(builder, type, value(type, nulls[i / STRETCH]));
      }
      return builder.buildAndPutOnDevice();
    }
  }

  private Object value(final DataType type, final double nulls) {
    if (random.nextDouble() < nulls) {
      return null;
    }
    if (type instanceof ListType || type instanceof StructType) {
      final List<Object> values = new ArrayList<>();
      final int count = type instanceof ListType ? random.nextInt(4) : type.getNumChildren();
      for (int i = 0; i < count; i++) {
        values.add(value(type.getChild(type instanceof ListType ? 0 : i), nulls));
      }
      return type instanceof ListType ? values : new StructData(values);
    }
    return switch (type.getType().getTypeId()) {
      case INT8, UINT8 -> (byte) random.nextInt();
      case INT16 -> (short) random.nextInt();
      case INT32, TIMESTAMP_DAYS -> random.nextInt(100_000);
      case INT64, TIMESTAMP_MICROSECONDS -> random.nextLong() >> 8;
      case BOOL8 -> random.nextBoolean();
      case FLOAT32 -> random.nextFloat();
      case FLOAT64 -> random.nextDouble();
      case STRING -> "é漢x".repeat(random.nextInt(4)) + random.nextInt(1000);
      case DECIMAL32 -> new BigDecimal(BigInteger.valueOf(random.nextInt(1_000_000)), 2);
      case DECIMAL64 -> new BigDecimal(BigInteger.valueOf(random.nextInt()), 3);
      default -> new BigDecimal(new BigInteger(100, random), 4);
    };
  }

  private static void append(final ColumnBuilder to, final DataType type, final Object value) {
    if (value == null) {
      to.appendNull();
    } else if (type instanceof ListType) {
      to.appendLists((List<?>) value);
    } else if (value instanceof StructData struct) {
      to.appendStructValues(struct);
    } else if (value instanceof Byte number) {
      to.append(number);
    } else if (value instanceof Short number) {
      to.append(number);
    } else if (value instanceof Integer number) {
      to.append(number);
    } else if (value instanceof Long number) {
      to.append(number);
    } else if (value instanceof Boolean flag) {
      to.append(flag);
    } else if (value instanceof Float number) {
      to.append(number);
    } else if (value instanceof Double number) {
      to.append(number);
    } else if (value instanceof String text) {
      to.appendUTF8String(text.getBytes(StandardCharsets.UTF_8));
    } else {
      to.append((BigDecimal) value);
    }
  }

  private Schema schema() {
    final Schema.Builder schema = Schema.builder();
    for (int i = 0; i < types.length; i++) {
      add(schema, types[i], i);
    }
    return schema.build();
  }

  private static void add(final Schema.Builder to, final DataType type, final int index) {
    final Schema.Builder added = to.addColumn(type.getType(), "c" + index);
    for (int i = 0; type.getType().isNestedType() && i < type.getNumChildren(); i++) {
      add(added, type.getChild(i), i);
    }
  }

  private static String[] rows(final Table table) {
    final StringBuilder[] texts = new StringBuilder[(int) table.getRowCount()];
    Arrays.setAll(texts, i -> new StringBuilder());
    for (int i = 0; i < table.getNumberOfColumns(); i++) {
      try (HostColumnVector column = table.getColumn(i).copyToHost()) {
        for (int row = 0; row < texts.length; row++) {
          write(column, row, texts[row]);
        }
      }
    }
    return Arrays.stream(texts).map(StringBuilder::toString).toArray(String[]::new);
  }

  private static void write(final HostColumnVectorCore column, final int row, final StringBuilder to) {
    final DType type = column.getType();
    if (column.isNull(row)) {
      to.append("null");
    } else if (type.equals(DType.LIST)) {
      to.append('[');
      for (long i = column.getStartListOffset(row); i < column.getEndListOffset(row); i++) {
        write(column.getChildColumnView(0), (int) i, to);
      }
      to.append(']');
    } else if (type.equals(DType.STRUCT)) {
      to.append('{');
      for (int i = 0; i < column.getNumChildren(); i++) {
        write(column.getChildColumnView(i), row, to);
      }
      to.append('}');
    } else {
      to.append(switch (type.getTypeId()) {
        case INT8, UINT8, BOOL8 -> (Object) column.getByte(row);
        case INT16 -> column.getShort(row);
        case INT32, TIMESTAMP_DAYS -> column.getInt(row);
        case INT64, TIMESTAMP_MICROSECONDS -> column.getLong(row);
        case FLOAT32 -> column.getFloat(row);
        case FLOAT64 -> column.getDouble(row);
        case STRING -> column.getJavaString(row);
        default -> column.getBigDecimal(row);
      });
    }
    to.append(',');
  }
}
