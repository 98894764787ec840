package io.zerohop.spark.rapids.api;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.ShimLoader;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.Supplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function0;
import scala.Option;
import scala.collection.immutable.Map;
import scala.runtime.AbstractFunction0;

/**
 * What is used of the RAPIDS Accelerator beyond its plain classes. They lie in one folder of its
 * jar for each Spark version and are seen only by its own class loader, so they are bound by method
 * handle, here and in {@link SpillStore}, which can be done without. Loaded only where RAPIDS is
 * there. Thread safe.
 */
public final class RapidsClasses {
  private static final String DEPENDENCY = "org.apache.spark.sql.rapids.GpuShuffleDependency";

  private final MethodHandle usesGpuShuffle;
  private final MethodHandle sparkTypes;
  private final MethodHandle exchangeMetrics;
  private final Class<?> packedColumn;
  private final MethodHandle contiguousTable;
  private final MethodHandle toBatch;
  private final MethodHandle plainColumn;
  private final MethodHandle schema;
  private final MethodHandle acquireSemaphore;
  private final MethodHandle releaseSemaphore;
  private final MethodHandle withRetry;
  private final MethodHandle deviceId;
  private final MethodHandle newRapidsConf;
  private final MethodHandle initShuffleEnv;
  private final MethodHandle shuffleEnvUsesGpu;

  private RapidsClasses() throws ReflectiveOperationException {
    final ClassLoader loader = ShimLoader.getShimClassLoader();
    final MethodHandles.Lookup lookup = MethodHandles.publicLookup();
    final Class<?> dependency = loader.loadClass(DEPENDENCY);
    final Class<?> conf = loader.loadClass("com.nvidia.spark.rapids.RapidsConf");
    usesGpuShuffle = method(lookup, dependency, "useGPUShuffle", boolean.class);
    sparkTypes = method(lookup, dependency, "sparkTypes", DataType[].class);
    exchangeMetrics = method(lookup, dependency, "metrics", Map.class);
    packedColumn = loader.loadClass("com.nvidia.spark.rapids.GpuPackedTableColumn");
    contiguousTable = method(lookup, packedColumn, "getContiguousTable", ContiguousTable.class);
    final Class<?> column = loader.loadClass("com.nvidia.spark.rapids.GpuColumnVector");
    toBatch =
        lookup.findStatic(
            column,
            "from",
            MethodType.methodType(ColumnarBatch.class, Table.class, DataType[].class));
    plainColumn = method(lookup, column, "getBase", ColumnVector.class);
    schema =
        lookup.findStatic(column, "from", MethodType.methodType(Schema.class, DataType[].class));
    acquireSemaphore =
        ofObject(
            lookup,
            loader,
            "com.nvidia.spark.rapids.GpuSemaphore$",
            "acquireIfNecessary",
            MethodType.methodType(void.class, TaskContext.class));
    releaseSemaphore =
        ofObject(
            lookup,
            loader,
            "com.nvidia.spark.rapids.GpuSemaphore$",
            "releaseIfNecessary",
            MethodType.methodType(void.class, TaskContext.class));
    withRetry =
        ofObject(
            lookup,
            loader,
            "com.nvidia.spark.rapids.RmmRapidsRetryIterator$",
            "withRetryNoSplit",
            MethodType.methodType(Object.class, Function0.class));
    deviceId =
        ofObject(
            lookup,
            loader,
            "com.nvidia.spark.rapids.GpuDeviceManager$",
            "getDeviceId",
            MethodType.methodType(Option.class));
    newRapidsConf =
        lookup
            .findConstructor(conf, MethodType.methodType(void.class, SparkConf.class))
            .asType(MethodType.methodType(Object.class, SparkConf.class));
    initShuffleEnv = ofShuffleEnv(lookup, loader, "init", conf, void.class);
    shuffleEnvUsesGpu = ofShuffleEnv(lookup, loader, "useGPUShuffle", conf, boolean.class);
  }

  private static MethodHandle method(
      final MethodHandles.Lookup lookup, final Class<?> of, final String name, final Class<?> type)
      throws ReflectiveOperationException {
    return lookup
        .findVirtual(of, name, MethodType.methodType(type))
        .asType(MethodType.methodType(type, Object.class));
  }

  /** A method of a Scala object. */
  private static MethodHandle ofObject(
      final MethodHandles.Lookup lookup,
      final ClassLoader loader,
      final String className,
      final String name,
      final MethodType type)
      throws ReflectiveOperationException {
    final Class<?> object = loader.loadClass(className);
    return lookup.findVirtual(object, name, type).bindTo(object.getField("MODULE$").get(null));
  }

  private static MethodHandle ofShuffleEnv(
      final MethodHandles.Lookup lookup,
      final ClassLoader loader,
      final String name,
      final Class<?> conf,
      final Class<?> result)
      throws ReflectiveOperationException {
    return ofObject(
            lookup,
            loader,
            "org.apache.spark.sql.rapids.GpuShuffleEnv$",
            name,
            MethodType.methodType(result, conf))
        .asType(MethodType.methodType(result, Object.class));
  }

  private static final class Holder {
    private static final RapidsClasses BOUND = bind();

    private static RapidsClasses bind() {
      try {
        return new RapidsClasses();
      } catch (final ReflectiveOperationException e) {
        throw new IllegalStateException(
            "This RAPIDS Accelerator is not one that Zerohop knows ("
                + e
                + "); set spark.zerohop.rapids.enabled=false, or use a version of"
                + " docs/rapids.md",
            e);
      }
    }
  }

  /**
   * The classes, bound at the first call.
   *
   * @throws IllegalStateException if this version of RAPIDS has other ones
   */
  public static RapidsClasses get() {
    return Holder.BOUND;
  }

  /** Whether a shuffle carries batches in GPU memory; false where RAPIDS is not there. */
  public static boolean isGpuShuffle(final ShuffleDependency<?, ?, ?> dependency) {
    if (!dependency.getClass().getName().equals(DEPENDENCY)) {
      return false;
    }
    try {
      return (boolean) get().usesGpuShuffle.invokeExact((Object) dependency);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** The types of a GPU shuffle's columns. */
  public DataType[] sparkTypes(final ShuffleDependency<?, ?, ?> dependency) {
    try {
      return (DataType[]) sparkTypes.invokeExact((Object) dependency);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** The SQL metrics, by name, that an exchange has for its shuffle manager. */
  @SuppressWarnings("unchecked")
  Map<String, SQLMetric> exchangeMetrics(final ShuffleDependency<?, ?, ?> dependency) {
    try {
      return (Map<String, SQLMetric>) (Map<?, ?>) exchangeMetrics.invokeExact((Object) dependency);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** The packed table that is a batch's only column; null if it is a batch of another kind. */
  public ContiguousTable packedTable(final ColumnarBatch batch) {
    final Object column = batch.numCols() == 1 ? batch.column(0) : null;
    if (!packedColumn.isInstance(column)) {
      return null;
    }
    try {
      return (ContiguousTable) contiguousTable.invokeExact(column);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** A batch that holds references of its own on the table's columns. */
  public ColumnarBatch toBatch(final Table table, final DataType[] types) {
    try {
      return (ColumnarBatch) toBatch.invokeExact(table, types);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** What cudf knows of a column of RAPIDS', which keeps it. */
  public ColumnVector plainColumn(final Object column) {
    try {
      return (ColumnVector) plainColumn.invokeExact(column);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Columns of these types, as cudf names them. */
  public Schema schema(final DataType[] types) {
    try {
      return (Schema) schema.invokeExact(types);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Lets other tasks use the GPU, until the task asks for it again. */
  public void releaseSemaphore(final TaskContext context) {
    try {
      releaseSemaphore.invoke(context);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Waits until the task may use the GPU, and readies the calling thread for it. */
  public void acquireSemaphore(final TaskContext context) {
    try {
      acquireSemaphore.invoke(context);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Runs a step again after RAPIDS made room, if it runs out of GPU memory. */
  @SuppressWarnings("unchecked")
  public <T> T withRetry(final Supplier<T> step) {
    try {
      return (T)
          withRetry.invoke(
              (Function0<Object>)
                  new AbstractFunction0<Object>() {
                    @Override
                    public Object apply() {
                      return step.get();
                    }
                  });
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** The GPU that RAPIDS uses in this executor, by its number here. */
  public int deviceId() {
    try {
      final Option<?> id = (Option<?>) deviceId.invoke();
      return id.isDefined() ? (Integer) id.get() : 0;
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Makes RAPIDS look at the configuration again, and says whether it shuffles on the GPU now. */
  public boolean initShuffleEnv(final SparkConf conf) {
    try {
      final Object rapidsConf = newRapidsConf.invoke(conf);
      initShuffleEnv.invoke(rapidsConf);
      return (boolean) shuffleEnvUsesGpu.invoke(rapidsConf);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Errors and unchecked exceptions of RAPIDS go on as they are. */
  public static RuntimeException rethrow(final Throwable failure) {
    if (failure instanceof Error error) {
      throw error;
    }
    if (failure instanceof RuntimeException unchecked) {
      throw unchecked;
    }
    throw new IllegalStateException(failure);
  }
}
