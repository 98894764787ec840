package io.zerohop.spark.rapids.setup;

import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.api.RapidsMember;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import io.zerohop.spark.rapids.write.KudoBatch;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.function.Supplier;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.AbstractFunction0;

/**
 * Partitionings of RAPIDS in a form that hands whole batches to the shuffle ({@link KudoBatch}).
 * Each is a subclass of ours of RAPIDS' own class. That one is seen only by RAPIDS' class loader,
 * so ours is defined there, once in a process. Thread safe.
 */
public final class KudoPartitioning {
  private static final Logger LOG = LoggerFactory.getLogger(KudoPartitioning.class);
  private static final String PACKAGE = "com.nvidia.spark.rapids.";
  private static final String ATTRIBUTES =
      "org/apache/spark/sql/catalyst/expressions/package$AttributeSeq";
  private static final String STAND_IN =
      "com/nvidia/spark/rapids/StandInForAttributeSeqInAPackageObject";

  private final Kind hash;
  private final Kind roundRobin;
  private final Class<?> rangeOriginal;
  private final Class<?> range;
  private final MethodHandle rangeToShuffle;
  private final MethodHandle convertRange;
  private final MethodHandle convertPartitioner;

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

  private KudoPartitioning() throws ReflectiveOperationException, IOException {
    final ClassLoader loader = ShimLoader.getShimClassLoader();
    for (final RapidsMember member : RapidsMember.values()) {
      if (member.feature() == RapidsFeature.KUDO) {
        member.bind(loader); // Before a class of ours is defined that would not link.
      }
    }
    final MethodHandles.Lookup lookup =
        MethodHandles.privateLookupIn(
            RapidsMember.NEW_ROUND_ROBIN.owner(loader), MethodHandles.lookup());
    hash =
        kind(
            loader,
            lookup,
            "ZerohopHashPartitioning",
            RapidsMember.NEW_HASH_PARTITIONING,
            RapidsMember.HASH_TO_GPU,
            RapidsMember.HASH_EXPRESSIONS,
            RapidsMember.HASH_PARTITIONS,
            RapidsMember.HASH_MODE);
    roundRobin =
        kind(
            loader,
            lookup,
            "ZerohopRoundRobinPartitioning",
            RapidsMember.NEW_ROUND_ROBIN,
            RapidsMember.ROUND_ROBIN_TO_GPU,
            RapidsMember.ROUND_ROBIN_PARTITIONS);
    rangeOriginal = RapidsMember.RANGE_TO_GPU.owner(loader);
    rangeToShuffle = RapidsMember.RANGE_TO_GPU.bind(loader);
    final Class<?> partitioner = define(lookup, "ZerohopRangePartitioning$Partitioner");
    range = define(lookup, "ZerohopRangePartitioning");
    convertRange =
        lookup.findStatic(
            range, "of", MethodType.methodType(range, rangeOriginal, SparkPlan.class));
    convertPartitioner =
        lookup.findStatic(
            partitioner,
            "of",
            MethodType.methodType(partitioner, partitioner.getSuperclass(), int.class));
  }

  /**
   * Binds a kind.
   *
   * @param constructor of the original; that of ours has the same parameters
   * @param parameters what gives them back, in their order
   */
  private static Kind kind(
      final ClassLoader loader,
      final MethodHandles.Lookup lookup,
      final String name,
      final RapidsMember constructor,
      final RapidsMember toShuffle,
      final RapidsMember... parameters)
      throws ReflectiveOperationException, IOException {
    final Class<?> original = constructor.owner(loader);
    final Class<?> ours = define(lookup, name);
    final MethodHandle[] getters = new MethodHandle[parameters.length];
    for (int i = 0; i < parameters.length; i++) {
      getters[i] = parameters[i].bind(loader);
    }
    final MethodHandle make =
        lookup.findConstructor(ours, constructor.bind(loader).type().changeReturnType(void.class));
    return new Kind(
        original,
        ours,
        toShuffle.bind(loader),
        MethodHandles.permuteArguments(
            MethodHandles.filterArguments(make, 0, getters),
            MethodType.methodType(ours, original),
            new int[parameters.length]));
  }

  private static Class<?> define(final MethodHandles.Lookup beside, final String name)
      throws IOException, IllegalAccessException {
    final String file = "/" + PACKAGE.replace('.', '/') + name + ".class";
    try (InputStream in = KudoPartitioning.class.getResourceAsStream(file)) {
      if (in == null) {
        throw new IOException("our jar lacks " + file);
      }
      return beside.defineClass(withSparksName(in.readAllBytes()));
    }
  }

  /** Names a class of Spark's that Java source cannot name; both names are as long. */
  private static byte[] withSparksName(final byte[] classFile) {
    final String text = new String(classFile, StandardCharsets.ISO_8859_1);
    return text.replace(STAND_IN, ATTRIBUTES).getBytes(StandardCharsets.ISO_8859_1);
  }

  private static final class Holder {
    private static final @Nullable KudoPartitioning BOUND = bind();

    private static @Nullable KudoPartitioning bind() {
      try {
        return new KudoPartitioning();
      } catch (final ReflectiveOperationException | IOException | LinkageError e) {
        SparkCode.PARTITIONINGS_UNKNOWN
            .says(
                "this RAPIDS Accelerator has unknown partitionings, so RAPIDS splits each batch"
                    + " itself, with one allocation a partition")
            .because(e)
            .remedy("use a version of docs/compatibility.md")
            .warn(LOG, e);
        return null;
      }
    }
  }

  /** Null if RAPIDS' classes are not those that are known; that is said once. */
  static @Nullable KudoPartitioning get() {
    return Holder.BOUND;
  }

  /** Whether it is one in the other form. */
  boolean isConverted(final Object partitioning) {
    final Class<?> type = partitioning.getClass();
    return type == hash.ours || type == roundRobin.ours || type == range;
  }

  /** Whether it is RAPIDS' own range partitioning, which samples the child of its exchange. */
  boolean isRange(final Object partitioning) {
    return partitioning.getClass() == rangeOriginal;
  }

  /** Whether it is a partitioning of RAPIDS of a kind that has another form, and not yet in it. */
  boolean applies(final Object partitioning) {
    return kindOf(partitioning) != null || isRange(partitioning);
  }

  private Kind known(final Object partitioning) {
    return Objects.requireNonNull(kindOf(partitioning), "it has another form");
  }

  private @Nullable Kind kindOf(final Object partitioning) {
    final Class<?> original = partitioning.getClass();
    if (original == hash.original) {
      return hash;
    }
    return original == roundRobin.original ? roundRobin : null;
  }

  /** Whether the batches of one that this {@link #applies} to go to a shuffle on the GPU. */
  boolean feedsGpuShuffle(final Object partitioning) {
    try {
      return isRange(partitioning)
          ? (boolean) rangeToShuffle.invoke(partitioning)
          : (boolean) known(partitioning).toShuffle.invoke(partitioning);
    } catch (final Throwable e) {
      throw RapidsClasses.rethrow(e);
    }
  }

  /**
   * The same partitioning in the other form; this has to {@linkplain #applies apply} to it.
   *
   * @param child of the exchange; a range partitioning alone takes it
   */
  Object convert(final Object partitioning, final @Nullable SparkPlan child) {
    try {
      return isRange(partitioning)
          ? convertRange.invoke(partitioning, child)
          : known(partitioning).convert.invoke(partitioning);
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
    return portable(planned, original, 0);
  }

  /**
   * The same for a range partitioner.
   *
   * @param shufflePartitions how many partitions the shuffle has
   */
  public static Serializable portable(
      final SQLConf planned, final Supplier<?> original, final int shufflePartitions) {
    return SQLConf.withExistingConf(
        planned,
        new AbstractFunction0<Portable>() {
          @Override
          public Portable apply() {
            return new Portable(original.get(), shufflePartitions);
          }
        });
  }

  /**
   * RAPIDS' own partitioning on its way to an executor, which converts it if it can.
   *
   * @param shufflePartitions of a range partitioner's shuffle; 0 for a partitioning of another kind
   */
  private record Portable(Object partitioning, int shufflePartitions) implements Serializable {
    private Object readResolve() {
      final KudoPartitioning bound = get();
      if (bound == null) {
        return partitioning;
      }
      return shufflePartitions == 0
          ? bound.convert(partitioning, null)
          : bound.convertPartitioner(partitioning, shufflePartitions);
    }
  }

  private Object convertPartitioner(final Object partitioner, final int shufflePartitions) {
    try {
      return convertPartitioner.invoke(partitioner, shufflePartitions);
    } catch (final Throwable e) {
      throw RapidsClasses.rethrow(e);
    }
  }
}
