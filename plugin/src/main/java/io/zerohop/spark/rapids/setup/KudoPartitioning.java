package io.zerohop.spark.rapids.setup;

import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.write.KudoSplit;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.Supplier;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.AbstractFunction0;

/**
 * Partitionings of RAPIDS in a form that hands whole batches to the shuffle ({@link KudoSplit}).
 * Each is a subclass of ours of RAPIDS' own class. That one is seen only by RAPIDS' class loader,
 * so ours is defined there, once in a process. Thread safe.
 */
public final class KudoPartitioning {
  private static final Logger LOG = LoggerFactory.getLogger(KudoPartitioning.class);
  private static final String PACKAGE = "com.nvidia.spark.rapids.";

  private final Class<?> hash;
  private final Class<?> roundRobin;
  private final Class<?> ourHash;
  private final Class<?> ourRoundRobin;
  private final MethodHandle expressions;
  private final MethodHandle hashPartitions;
  private final MethodHandle hashMode;
  private final MethodHandle hashToShuffle;
  private final MethodHandle newHash;
  private final MethodHandle roundRobinPartitions;
  private final MethodHandle roundRobinToShuffle;
  private final MethodHandle newRoundRobin;

  private KudoPartitioning() throws ReflectiveOperationException, IOException {
    final ClassLoader loader = ShimLoader.getShimClassLoader();
    final Class<?> seq = loader.loadClass("scala.collection.immutable.Seq");
    final Class<?> mode = loader.loadClass(PACKAGE + "HashMode");
    hash = loader.loadClass(PACKAGE + "shims.GpuHashPartitioning");
    roundRobin = loader.loadClass(PACKAGE + "GpuRoundRobinPartitioning");
    final MethodHandles.Lookup lookup =
        MethodHandles.privateLookupIn(roundRobin, MethodHandles.lookup());
    ourHash = define(lookup, "ZerohopHashPartitioning");
    ourRoundRobin = define(lookup, "ZerohopRoundRobinPartitioning");
    expressions = getter(lookup, hash, "expressions", seq);
    hashPartitions = getter(lookup, hash, "numPartitions", int.class);
    hashMode = getter(lookup, hash, "hashMode", mode);
    hashToShuffle = getter(lookup, hash, "usesGPUShuffle", boolean.class);
    newHash =
        lookup.findConstructor(ourHash, MethodType.methodType(void.class, seq, int.class, mode));
    roundRobinPartitions = getter(lookup, roundRobin, "numPartitions", int.class);
    roundRobinToShuffle = getter(lookup, roundRobin, "usesGPUShuffle", boolean.class);
    newRoundRobin =
        lookup.findConstructor(ourRoundRobin, MethodType.methodType(void.class, int.class));
  }

  private static MethodHandle getter(
      final MethodHandles.Lookup lookup, final Class<?> of, final String name, final Class<?> type)
      throws ReflectiveOperationException {
    return lookup.findVirtual(of, name, MethodType.methodType(type));
  }

  private static Class<?> define(final MethodHandles.Lookup beside, final String name)
      throws IOException, IllegalAccessException {
    final String file = "/" + PACKAGE.replace('.', '/') + name + ".class";
    try (InputStream in = KudoPartitioning.class.getResourceAsStream(file)) {
      if (in == null) {
        throw new IOException("our jar lacks " + file);
      }
      return beside.defineClass(in.readAllBytes());
    }
  }

  private static final class Holder {
    private static final KudoPartitioning BOUND = bind();

    private static KudoPartitioning bind() {
      try {
        return new KudoPartitioning();
      } catch (final ReflectiveOperationException | IOException | LinkageError e) {
        LOG.warn(
            "Zerohop: this RAPIDS Accelerator's partitionings are other ones than are known, so"
                + " RAPIDS splits each batch by itself, one allocation a partition; use a version"
                + " of docs/rapids.md",
            e);
        return null;
      }
    }
  }

  /** Null if RAPIDS' classes are not those that are known; that is said once. */
  static KudoPartitioning get() {
    return Holder.BOUND;
  }

  /** Whether it is one in the other form. */
  boolean isConverted(final Object partitioning) {
    return partitioning.getClass() == ourHash || partitioning.getClass() == ourRoundRobin;
  }

  /** Whether it is a partitioning of RAPIDS of a kind that has another form, and not yet in it. */
  boolean applies(final Object partitioning) {
    return partitioning.getClass() == hash || partitioning.getClass() == roundRobin;
  }

  /** Whether its batches go to a shuffle that takes them in GPU memory. */
  boolean feedsGpuShuffle(final Object partitioning) {
    try {
      return (boolean)
          (partitioning.getClass() == hash ? hashToShuffle : roundRobinToShuffle)
              .invoke(partitioning);
    } catch (final Throwable e) {
      throw RapidsClasses.rethrow(e);
    }
  }

  /** The same partitioning in the other form. */
  Object convert(final Object partitioning) {
    try {
      return partitioning.getClass() == hash
          ? newHash.invoke(
              expressions.invoke(partitioning),
              (int) hashPartitions.invoke(partitioning),
              hashMode.invoke(partitioning))
          : newRoundRobin.invoke((int) roundRobinPartitions.invoke(partitioning));
    } catch (final Throwable e) {
      throw RapidsClasses.rethrow(e);
    }
  }

  /**
   * What a task carries instead of a partitioning in the other form, whose class an executor's
   * loader finds by no name. Spark serialises tasks in a thread without a session, where RAPIDS'
   * partitioning would find other settings than the plan was made with.
   *
   * @param planned settings of the plan
   * @param original makes RAPIDS' own
   */
  public static Serializable portable(final SQLConf planned, final Supplier<?> original) {
    return SQLConf.withExistingConf(
        planned,
        new AbstractFunction0<Portable>() {
          @Override
          public Portable apply() {
            return new Portable(original.get());
          }
        });
  }

  /** RAPIDS' own partitioning on its way to an executor, which converts it if it can. */
  private record Portable(Object partitioning) implements Serializable {
    private Object readResolve() {
      final KudoPartitioning bound = get();
      return bound == null ? partitioning : bound.convert(partitioning);
    }
  }
}
