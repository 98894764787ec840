package io.zerohop.spark.rapids.setup;

import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.spark.log.SparkCode;
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

  private final Kind hash;
  private final Kind roundRobin;

  /**
   * One of RAPIDS' partitionings that has another form.
   *
   * @param original RAPIDS' class
   * @param ours its subclass
   * @param toShuffle asks an original whether its batches go to a shuffle on the GPU
   * @param convert makes one of ours of an original
   */
  private record Kind(
      Class<?> original, Class<?> ours, MethodHandle toShuffle, MethodHandle convert) {}

  /** A parameter of an original's constructor, which its method of this name gives back. */
  private record Parameter(String name, Class<?> type) {}

  private KudoPartitioning() throws ReflectiveOperationException, IOException {
    final ClassLoader loader = ShimLoader.getShimClassLoader();
    final Parameter partitions = new Parameter("numPartitions", int.class);
    final Class<?> seq = loader.loadClass("scala.collection.immutable.Seq");
    final Class<?> mode = loader.loadClass(PACKAGE + "HashMode");
    final Class<?> plain = loader.loadClass(PACKAGE + "GpuRoundRobinPartitioning");
    final MethodHandles.Lookup lookup =
        MethodHandles.privateLookupIn(plain, MethodHandles.lookup());
    hash =
        kind(
            lookup,
            loader.loadClass(PACKAGE + "shims.GpuHashPartitioning"),
            "ZerohopHashPartitioning",
            new Parameter("expressions", seq),
            partitions,
            new Parameter("hashMode", mode));
    roundRobin = kind(lookup, plain, "ZerohopRoundRobinPartitioning", partitions);
  }

  /**
   * Binds a kind.
   *
   * @param parameters of the constructors of the original and of ours
   */
  private static Kind kind(
      final MethodHandles.Lookup lookup,
      final Class<?> original,
      final String name,
      final Parameter... parameters)
      throws ReflectiveOperationException, IOException {
    final Class<?> ours = define(lookup, name);
    final Class<?>[] types = new Class<?>[parameters.length];
    final MethodHandle[] getters = new MethodHandle[parameters.length];
    for (int i = 0; i < parameters.length; i++) {
      types[i] = parameters[i].type;
      getters[i] = getter(lookup, original, parameters[i].name, types[i]);
    }
    final MethodHandle constructor =
        lookup.findConstructor(ours, MethodType.methodType(void.class, types));
    final MethodHandle fromOriginals = MethodHandles.filterArguments(constructor, 0, getters);
    return new Kind(
        original,
        ours,
        getter(lookup, original, "usesGPUShuffle", boolean.class),
        MethodHandles.permuteArguments(
            fromOriginals, MethodType.methodType(ours, original), new int[parameters.length]));
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
        SparkCode.PARTITIONINGS_UNKNOWN.warn(
            LOG,
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
    return partitioning.getClass() == hash.ours || partitioning.getClass() == roundRobin.ours;
  }

  /** Whether it is a partitioning of RAPIDS of a kind that has another form, and not yet in it. */
  boolean applies(final Object partitioning) {
    return kindOf(partitioning) != null;
  }

  private Kind kindOf(final Object partitioning) {
    final Class<?> original = partitioning.getClass();
    if (original == hash.original) {
      return hash;
    }
    return original == roundRobin.original ? roundRobin : null;
  }

  /** Whether the batches of one that this {@link #applies} to go to a shuffle on the GPU. */
  boolean feedsGpuShuffle(final Object partitioning) {
    try {
      return (boolean) kindOf(partitioning).toShuffle.invoke(partitioning);
    } catch (final Throwable e) {
      throw RapidsClasses.rethrow(e);
    }
  }

  /** The same partitioning in the other form; this has to {@linkplain #applies apply} to it. */
  Object convert(final Object partitioning) {
    try {
      return kindOf(partitioning).convert.invoke(partitioning);
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
