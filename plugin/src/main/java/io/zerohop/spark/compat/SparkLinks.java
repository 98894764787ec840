package io.zerohop.spark.compat;

import io.zerohop.device.Message;
import io.zerohop.spark.log.UnusableException;
import java.io.IOException;
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
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.util.ConfigProvider;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.MapStatus$;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.BlockManagerMaster;
import org.apache.spark.util.collection.ExternalSorter;
import org.jspecify.annotations.Nullable;
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
    return call(() -> (MapStatus) MAP_STATUS.invokeExact(location, sizes, mapId, checksum));
  }

  /** A sorter without row checksums of its own. */
  @SuppressWarnings("unchecked")
  public static <K, V, C> ExternalSorter<K, V, C> newExternalSorter(
      final TaskContext context,
      final Option<Aggregator<K, V, C>> aggregator,
      final Option<Partitioner> partitioner,
      final Option<Ordering<K>> ordering,
      final Serializer serializer) {
    return call(
        () ->
            (ExternalSorter<K, V, C>)
                EXTERNAL_SORTER.invoke(context, aggregator, partitioner, ordering, serializer));
  }

  /** A configuration for Spark's transport, with what Spark's RPC has of TLS. */
  public static ConfigProvider newRpcConfig(final SecurityManager security, final SparkConf conf) {
    return call(() -> (ConfigProvider) RPC_CONFIG.invokeExact(security, conf));
  }

  /** The block managers of the other executors, as the driver lists them now. */
  @SuppressWarnings("unchecked")
  public static Seq<BlockManagerId> peers(
      final BlockManagerMaster master, final BlockManagerId self) {
    return call(() -> (Seq<BlockManagerId>) Peers.GET.invokeExact(master, self));
  }

  /** Loaded separately, because only path {@code sent} needs it. */
  private static final class Peers {
    static final MethodHandle GET =
        SeqMethod.find(BlockManagerMaster.class, "getPeers", BlockManagerId.class);
  }

  /** The stages of a job, also those that Spark skips. */
  @SuppressWarnings("unchecked")
  public static Seq<StageInfo> stages(final SparkListenerJobStart job) {
    return call(() -> (Seq<StageInfo>) Jobs.STAGES.invokeExact(job));
  }

  /** Loaded separately, because only the order of spilling needs it. */
  private static final class Jobs {
    static final MethodHandle STAGES = SeqMethod.find(SparkListenerJobStart.class, "stageInfos");
  }

  /** The map outputs that Spark's resolver has files of. */
  public static Seq<?> storedShuffles(final IndexShuffleBlockResolver index) {
    return call(() -> (Seq<?>) Stored.GET.invokeExact(index));
  }

  /** Loaded separately, because only executors that are decommissioned need it. */
  private static final class Stored {
    static final MethodHandle GET =
        SeqMethod.find(IndexShuffleBlockResolver.class, "getStoredShuffles");
  }

  /** Has migrated blocks of a shuffle refused; nothing before Spark 4.0. */
  public static void skip(final IndexShuffleBlockResolver index, final int shuffleId) {
    if (From40.SKIP != null) {
      try {
        From40.SKIP.invoke(index, shuffleId);
      } catch (final Throwable e) {
        throw rethrow(e);
      }
    }
  }

  /** The form of a buffer that goes over a connection with TLS. */
  public static Object toSslBytes(final ManagedBuffer buffer) throws IOException {
    if (From40.TO_SSL == null) {
      return buffer.convertToNetty(); // Where nobody asks.
    }
    try {
      return From40.TO_SSL.invoke(buffer);
    } catch (final IOException e) {
      throw e;
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  /** Methods that Spark has from 4.0 on. */
  private static final class From40 {
    static final @Nullable MethodHandle SKIP =
        find(IndexShuffleBlockResolver.class, "addShuffleToSkip", int.class);
    static final @Nullable MethodHandle TO_SSL = find(ManagedBuffer.class, "convertToNettyForSsl");

    private static @Nullable MethodHandle find(
        final Class<?> owner, final String name, final Class<?>... parameters) {
      try {
        return MethodHandles.lookup().unreflect(owner.getMethod(name, parameters));
      } catch (final ReflectiveOperationException e) {
        return null;
      }
    }
  }

  /** Apart from the other handles, which a Spark may lack that has these methods. */
  private static final class SeqMethod {
    /** A method whose result is another {@code Seq} in Scala 2.12 than in 2.13. */
    static MethodHandle find(
        final Class<?> owner, final String name, final Class<?>... parameters) {
      try {
        final MethodHandle found =
            MethodHandles.lookup().unreflect(owner.getMethod(name, parameters));
        return found.asType(found.type().changeReturnType(Seq.class));
      } catch (final ReflectiveOperationException e) {
        throw unsupported(owner.getSimpleName() + "." + name, e);
      }
    }
  }

  private static MethodHandle mapStatus() {
    final MethodType three =
        MethodType.methodType(MapStatus.class, BlockManagerId.class, long[].class, long.class);
    final MethodHandles.Lookup lookup = MethodHandles.lookup();
    try {
      return lookup.bind(MapStatus$.MODULE$, "apply", three.appendParameterTypes(long.class));
    } catch (final NoSuchMethodException before41) {
      try {
        return MethodHandles.dropArguments(
            lookup.bind(MapStatus$.MODULE$, "apply", three), 3, long.class);
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

  /** A call by a method handle. */
  @FunctionalInterface
  private interface Call<T> {
    T make() throws Throwable;
  }

  private static <T> T call(final Call<T> call) {
    try {
      return call.make();
    } catch (final Throwable e) {
      throw rethrow(e);
    }
  }

  static RuntimeException rethrow(final Throwable e) {
    if (e instanceof Error error) {
      throw error;
    }
    return e instanceof RuntimeException known ? known : new IllegalStateException(e);
  }
}
