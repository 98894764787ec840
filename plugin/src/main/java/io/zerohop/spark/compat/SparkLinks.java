package io.zerohop.spark.compat;

import io.zerohop.device.Message;
import io.zerohop.spark.log.UnusableException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.spark.Aggregator;
import org.apache.spark.Partitioner;
import org.apache.spark.SSLOptions;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.network.util.ConfigProvider;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.MapStatus$;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.BlockManagerMaster;
import org.apache.spark.util.collection.ExternalSorter;
import scala.Option;
import scala.Tuple2;
import scala.collection.Seq;
import scala.math.Ordering;

/**
 * The few calls whose signature differs between the Spark versions that one jar serves, bound once
 * by method handle. Everything else is linked directly, and a test proves that it links.
 */
public final class SparkLinks {
  /** {@code (BlockManagerId, long[], long)}, and a fourth, row checksum argument from 4.1 on. */
  private static final MethodHandle MAP_STATUS = mapStatus();

  /** Five arguments, and from 4.2 on the row checksums, which we update ourselves. */
  private static final MethodHandle EXTERNAL_SORTER = externalSorter();

  /** {@code (SecurityManager, SparkConf)}: the options for TLS are in the first from 4.0 on. */
  private static final MethodHandle RPC_CONFIG = rpcConfig();

  private SparkLinks() {}

  /** A map status; the checksum is dropped where Spark does not know it. */
  public static MapStatus newMapStatus(
      final BlockManagerId location, final long[] sizes, final long mapId, final long checksum) {
    try {
      return (MapStatus) MAP_STATUS.invokeExact(location, sizes, mapId, checksum);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** A sorter without row checksums of its own. */
  @SuppressWarnings("unchecked")
  public static <K, V, C> ExternalSorter<K, V, C> newExternalSorter(
      final TaskContext context,
      final Option<Aggregator<K, V, C>> aggregator,
      final Option<Partitioner> partitioner,
      final Option<Ordering<K>> ordering,
      final Serializer serializer) {
    try {
      return (ExternalSorter<K, V, C>)
          EXTERNAL_SORTER.invoke(context, aggregator, partitioner, ordering, serializer);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** A configuration for Spark's transport, with what Spark's RPC has of TLS. */
  public static ConfigProvider newRpcConfig(final SecurityManager security, final SparkConf conf) {
    try {
      return (ConfigProvider) RPC_CONFIG.invokeExact(security, conf);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** The block managers of the other executors, as the driver lists them now. */
  @SuppressWarnings("unchecked")
  public static Seq<BlockManagerId> peers(
      final BlockManagerMaster master, final BlockManagerId self) {
    try {
      return (Seq<BlockManagerId>) Peers.GET.invokeExact(master, self);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Loaded separately, because only path {@code sent} needs it. */
  private static final class Peers {
    /** {@code (BlockManagerMaster, BlockManagerId)}: Scala 2.12 and 2.13 differ in the result. */
    static final MethodHandle GET = find();

    private static MethodHandle find() {
      try {
        return MethodHandles.lookup()
            .unreflect(BlockManagerMaster.class.getMethod("getPeers", BlockManagerId.class))
            .asType(
                MethodType.methodType(Seq.class, BlockManagerMaster.class, BlockManagerId.class));
      } catch (final ReflectiveOperationException e) {
        throw unsupported("BlockManagerMaster.getPeers", e);
      }
    }
  }

  /** The stages of a job, also those that Spark skips. */
  @SuppressWarnings("unchecked")
  public static Seq<StageInfo> stages(final SparkListenerJobStart job) {
    try {
      return (Seq<StageInfo>) Jobs.STAGES.invokeExact(job);
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Loaded separately, because only the order of spilling needs it. */
  private static final class Jobs {
    /** {@code (SparkListenerJobStart)}: Scala 2.12 and 2.13 differ in the result. */
    static final MethodHandle STAGES = find();

    private static MethodHandle find() {
      try {
        return MethodHandles.lookup()
            .unreflect(SparkListenerJobStart.class.getMethod("stageInfos"))
            .asType(MethodType.methodType(Seq.class, SparkListenerJobStart.class));
      } catch (final ReflectiveOperationException e) {
        throw unsupported("SparkListenerJobStart.stageInfos", e);
      }
    }
  }

  private static MethodHandle mapStatus() {
    final MethodHandles.Lookup lookup = MethodHandles.lookup();
    final Class<?>[] three = {BlockManagerId.class, long[].class, long.class};
    final Class<?>[] four = {BlockManagerId.class, long[].class, long.class, long.class};
    try {
      return lookup
          .findVirtual(MapStatus$.class, "apply", MethodType.methodType(MapStatus.class, four))
          .bindTo(MapStatus$.MODULE$);
    } catch (final NoSuchMethodException before41) {
      try {
        final MethodHandle apply =
            lookup
                .findVirtual(
                    MapStatus$.class, "apply", MethodType.methodType(MapStatus.class, three))
                .bindTo(MapStatus$.MODULE$);
        return MethodHandles.dropArguments(apply, 3, long.class);
      } catch (final ReflectiveOperationException e) {
        throw unsupported("MapStatus.apply", e);
      }
    } catch (final IllegalAccessException e) {
      throw unsupported("MapStatus.apply", e);
    }
  }

  private static MethodHandle externalSorter() {
    try {
      final Constructor<?> constructor =
          Arrays.stream(ExternalSorter.class.getConstructors())
              .filter(candidate -> candidate.getParameterCount() >= 5)
              .findFirst()
              .orElseThrow(() -> new NoSuchMethodException("ExternalSorter.<init>"));
      final MethodHandle handle = MethodHandles.lookup().unreflectConstructor(constructor);
      if (constructor.getParameterCount() == 5) {
        return handle;
      }
      final Class<?> checksums = constructor.getParameterTypes()[5];
      return MethodHandles.insertArguments(
          handle, 5, java.lang.reflect.Array.newInstance(checksums.getComponentType(), 0));
    } catch (final ReflectiveOperationException e) {
      throw unsupported("ExternalSorter", e);
    }
  }

  private static MethodHandle rpcConfig() {
    final MethodHandles.Lookup lookup = MethodHandles.lookup();
    try {
      final MethodHandle options =
          lookup.findVirtual(
              SecurityManager.class, "getRpcSSLOptions", MethodType.methodType(SSLOptions.class));
      final MethodHandle provider =
          lookup.findVirtual(
              SSLOptions.class,
              "createConfigProvider",
              MethodType.methodType(ConfigProvider.class, SparkConf.class));
      return MethodHandles.filterArguments(provider, 0, options);
    } catch (final NoSuchMethodException before40) {
      try {
        return lookup.findStatic(
            SparkLinks.class,
            "plainConfig",
            MethodType.methodType(ConfigProvider.class, SecurityManager.class, SparkConf.class));
      } catch (final ReflectiveOperationException e) {
        throw unsupported("SecurityManager.getRpcSSLOptions", e);
      }
    } catch (final IllegalAccessException e) {
      throw unsupported("SecurityManager.getRpcSSLOptions", e);
    }
  }

  /** Before 4.0, where Spark's transport knows no TLS. */
  @SuppressWarnings({"UnusedMethod", "UnusedVariable"}) // A method handle calls it.
  private static ConfigProvider plainConfig(final SecurityManager security, final SparkConf conf) {
    return new MapConfigProvider(
        Arrays.stream(conf.getAll()).collect(Collectors.toMap(Tuple2::_1, Tuple2::_2)));
  }

  /** {@link SparkProbe} finds it first, and says what comes of it. */
  static IllegalStateException unsupported(final String what, final Exception cause) {
    return new UnusableException(
        Message.of("it lacks " + what + " as Zerohop knows it")
            .at("Spark " + org.apache.spark.package$.MODULE$.SPARK_VERSION())
            .remedy("use Spark 3.5, 4.0, 4.1 or 4.2, or set spark.zerohop.enabled=false"),
        cause);
  }

  static RuntimeException rethrow(final Throwable e) {
    if (e instanceof Error) {
      throw (Error) e;
    }
    return e instanceof RuntimeException ? (RuntimeException) e : new IllegalStateException(e);
  }
}
