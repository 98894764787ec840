package io.zerohop.spark.rapids.api;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.device.Message;
import io.zerohop.spark.log.UnusableException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodType;
import java.util.function.Supplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.jspecify.annotations.Nullable;
import scala.Function0;
import scala.Option;
import scala.collection.immutable.Map;
import scala.runtime.AbstractFunction0;

/**
 * Bindings to the RAPIDS Accelerator beyond its plain classes. They lie in one folder of its jar
 * for each Spark version and are seen only by its own class loader, so they are bound by method
 * handle, by {@link RapidsMember}'s names: here, and in {@link SpillStore}, which can be done
 * without. Loaded only where RAPIDS is there. Thread safe.
 */
public final class RapidsClasses {
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
  private final ShuffleEnv shuffleEnv;

  private RapidsClasses() throws ReflectiveOperationException {
    final ClassLoader loader = ShimLoader.getShimClassLoader();
    usesGpuShuffle = method(loader, RapidsMember.USES_GPU_SHUFFLE, boolean.class);
    sparkTypes = method(loader, RapidsMember.SPARK_TYPES, DataType[].class);
    exchangeMetrics = method(loader, RapidsMember.EXCHANGE_METRICS, Map.class);
    packedColumn = RapidsMember.CONTIGUOUS_TABLE.owner(loader);
    contiguousTable = method(loader, RapidsMember.CONTIGUOUS_TABLE, ContiguousTable.class);
    toBatch = RapidsMember.TO_BATCH.bind(loader);
    plainColumn = method(loader, RapidsMember.PLAIN_COLUMN, ColumnVector.class);
    schema = RapidsMember.SCHEMA.bind(loader);
    acquireSemaphore = RapidsMember.ACQUIRE_SEMAPHORE.bind(loader);
    releaseSemaphore = RapidsMember.RELEASE_SEMAPHORE.bind(loader);
    withRetry = RapidsMember.WITH_RETRY.bind(loader);
    deviceId = RapidsMember.DEVICE_ID.bind(loader);
    shuffleEnv = ShuffleEnv.bind(loader);
  }

  /** A method without parameters, of an object whose class is not known here. */
  private static MethodHandle method(
      final ClassLoader loader, final RapidsMember member, final Class<?> type)
      throws ReflectiveOperationException {
    return member.bind(loader).asType(MethodType.methodType(type, Object.class));
  }

  private static final class Holder {
    private static final RapidsClasses BOUND = bind();

    private static RapidsClasses bind() {
      try {
        return new RapidsClasses();
      } catch (final ReflectiveOperationException e) {
        throw new UnusableException(
            Message.of("Zerohop does not know this RAPIDS Accelerator")
                .because(e)
                .remedy(
                    "set spark.zerohop.rapids.enabled=false, or use a version of"
                        + " docs/compatibility.md"),
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
    if (!dependency.getClass().getName().equals(RapidsMember.DEPENDENCY)) {
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
  public @Nullable ContiguousTable packedTable(final ColumnarBatch batch) {
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

  /** The number of RAPIDS' GPU in this executor, among those visible here. */
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
    return shuffleEnv.init(conf);
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

  /**
   * RAPIDS' shuffle environment, which decides once, when it is created, whether batches stay on
   * the GPU. One subclass for each way that releases make it. Thread safe.
   */
  abstract static class ShuffleEnv {
    private final MethodHandle newConf;
    private final MethodHandle usesGpu;

    /** By classes of RAPIDS that this loader sees. */
    ShuffleEnv(final ClassLoader loader) throws ReflectiveOperationException {
      newConf = RapidsMember.NEW_CONF.bind(loader);
      usesGpu = RapidsMember.ENV_USES_GPU.bind(loader);
    }

    /** Binds the way that this release has. */
    static ShuffleEnv bind(final ClassLoader loader) throws ReflectiveOperationException {
      try {
        return new OfConf(loader);
      } catch (final NoSuchMethodException e) {
        try {
          return new WithDisk(loader);
        } catch (final ReflectiveOperationException other) {
          e.addSuppressed(other);
          throw e;
        }
      }
    }

    /** Makes it anew, of a configuration of RAPIDS'. */
    abstract void make(Object rapidsConf) throws Throwable;

    /** Makes it anew, and says whether batches stay on the GPU now. */
    boolean init(final SparkConf conf) {
      try {
        final Object rapidsConf = newConf.invoke(conf);
        make(rapidsConf);
        return (boolean) usesGpu.invoke(rapidsConf);
      } catch (final Throwable e) {
        throw RapidsClasses.rethrow(e);
      }
    }

    /** From 25.02 on. */
    private static final class OfConf extends ShuffleEnv {
      private final MethodHandle init;

      OfConf(final ClassLoader loader) throws ReflectiveOperationException {
        super(loader);
        init = RapidsMember.INIT_ENV.bind(loader);
      }

      @Override
      void make(final Object rapidsConf) throws Throwable {
        init.invoke(rapidsConf);
      }
    }

    /** 24.12: it is told where spilled buffers go, which the driver has no place for. */
    private static final class WithDisk extends ShuffleEnv {
      private final MethodHandle init;
      private final MethodHandle disk;

      WithDisk(final ClassLoader loader) throws ReflectiveOperationException {
        super(loader);
        init = RapidsMember.INIT_ENV_WITH_DISK.bind(loader);
        disk = RapidsMember.DISK_BLOCK_MANAGER.bind(loader);
      }

      @Override
      void make(final Object rapidsConf) throws Throwable {
        init.invoke(rapidsConf, disk.invoke());
      }
    }
  }
}
