package io.zerohop.spark.compat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** Jobs give right results on a Spark that lacks something, and where our own code lacks some. */
class VendorSparkTest {
  private static final int RECORDS = 60_000;
  private static final String MANAGER = "io.zerohop.spark.ZerohopShuffleManager";

  /** An application by the classes of one Spark. */
  public abstract static class Job implements Callable<Object> {
    abstract Object run(JavaSparkContext spark);

    @Override
    public Object call() {
      final SparkConf conf =
          new SparkConf(false)
              .setMaster("local[2]")
              .setAppName("vendor")
              .set("spark.ui.enabled", "false")
              .set("spark.shuffle.compress", "false")
              // Else an object that records share is written once.
              .set("spark.serializer.objectStreamReset", "1")
              .set("spark.task.maxFailures", "1")
              .set("spark.shuffle.manager", MANAGER)
              .set("spark.zerohop.pool.size", "16m");
      try (JavaSparkContext spark = new JavaSparkContext(conf)) {
        return run(spark);
      }
    }
  }

  /** Four times what the pool holds. */
  public static final class Full extends Job {
    @Override
    Object run(final JavaSparkContext spark) {
      return spark
          .parallelize(IntStream.range(0, RECORDS).boxed().toList(), 4)
          .mapToPair(i -> new Tuple2<>(i, new byte[1000]))
          .partitionBy(new HashPartitioner(4))
          .count();
    }
  }

  /** Records that share one object, as rows of Spark SQL do: who keeps one must copy it. */
  public static final class Shared extends Job {
    @Override
    Object run(final JavaSparkContext spark) {
      return sum(
          spark
              .parallelize(List.of(1, 2), 2)
              .mapPartitionsToPair(ignored -> shared())
              .partitionBy(new HashPartitioner(3)));
    }

    private static long sum(final JavaPairRDD<Integer, long[]> pairs) {
      return pairs.values().map(value -> value[0]).reduce(Long::sum);
    }

    private static Iterator<Tuple2<Integer, long[]>> shared() {
      final long[] value = new long[1];
      return Stream.iterate(1, i -> i + 1)
          .limit(1000)
          .map(
              i -> {
                value[0] = i;
                return new Tuple2<>(i, value);
              })
          .iterator();
    }
  }

  /** Sorted by the reader. */
  public static final class Sorted extends Job {
    @Override
    Object run(final JavaSparkContext spark) {
      return spark
          .parallelize(IntStream.range(0, 1000).map(i -> 999 - i).boxed().toList(), 3)
          .mapToPair(i -> new Tuple2<>(i, i))
          .sortByKey()
          .keys()
          .collect();
    }
  }

  /** Dataproc's: cudf-spark issue 15418. */
  @Test
  void aFullPoolGoesToFilesWhereSparkCannotCommitThem() throws Exception {
    final ClassLoader spark =
        new SparkWithout(
            "org.apache.spark.shuffle.IndexShuffleBlockResolver", "writeMetadataFileAndCommit");
    assertThat(runOn(spark, Full.class)).isEqualTo((long) RECORDS);
    assertThat(hasFailedToLink(spark)).isFalse();
  }

  /** Met when all records have been taken, so Spark has to run the task again. */
  @Test
  void aWriterThatCannotBeLinkedIsReplacedBySparks() throws Exception {
    final ClassLoader ours =
        SparkWithout.declared("io.zerohop.spark.rows.MapOutputBuffer", "commit");
    assertThat(runOn(ours, Shared.class)).isEqualTo(2 * 1000L * 1001 / 2);
    assertThat(hasFailedToLink(ours)).isTrue();
  }

  /** What it reads lies in our memory all the same. */
  @Test
  void aReaderThatCannotBeLinkedIsReplacedBySparks() throws Exception {
    final ClassLoader ours =
        SparkWithout.declared("io.zerohop.spark.compat.SparkLinks", "newExternalSorter");
    assertThat(runOn(ours, Sorted.class)).isEqualTo(IntStream.range(0, 1000).boxed().toList());
    assertThat(hasFailedToLink(ours)).isTrue();
  }

  private static boolean hasFailedToLink(final ClassLoader loader) throws Exception {
    return (Boolean)
        loader
            .loadClass("io.zerohop.spark.task.FailureOutcome$LinkFailure")
            .getMethod("happened")
            .invoke(null);
  }

  private static Object runOn(final ClassLoader loader, final Class<?> job) throws Exception {
    final Thread thread = Thread.currentThread();
    final ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(loader);
    try {
      return ((Callable<?>) loader.loadClass(job.getName()).getConstructor().newInstance()).call();
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  /** As the driver makes it: the sentence is in its log, and the application goes on. */
  @Test
  void withoutAMemberOfItsManagerShufflesAreLeftToSpark() throws Exception {
    final Set<String> tried = new HashSet<>();
    for (final LinkedMember link : LinkedMember.read(SparkProbe.class, SparkProbe.LINKS)) {
      if (link.feature().equals("SHUFFLE") && isOfShuffles(link) && tried.add(link.owner())) {
        assertThat(resolverWithout(link)).as("%s", link).endsWith(".IndexShuffleBlockResolver");
      }
    }
    assertThat(tried).hasSizeGreaterThan(5);
  }

  /** What a manager needs that is not Zerohop's, too, is not taken away. */
  private static boolean isOfShuffles(final LinkedMember link) {
    return !link.member().isEmpty()
        && !link.member().equals("<init>")
        && (link.owner().startsWith("org.apache.spark.shuffle.")
            || link.owner().startsWith("org.apache.spark.network.buffer.")
            || link.owner().startsWith("org.apache.spark.scheduler.MapStatus"))
        && !link.owner().endsWith("SortShuffleManager")
        && !link.owner().endsWith("BaseShuffleHandle");
  }

  private static String resolverWithout(final LinkedMember link) throws Exception {
    final ClassLoader spark = new SparkWithout(link.owner(), link.member());
    final Class<?> confClass = spark.loadClass(SparkConf.class.getName());
    final Object conf = confClass.getConstructor(boolean.class).newInstance(false);
    confClass.getMethod("set", String.class, String.class).invoke(conf, "spark.app.id", "app");
    final Object manager =
        spark.loadClass(MANAGER).getConstructor(confClass, boolean.class).newInstance(conf, true);
    // Not stopped, which may need what is gone; it has started nothing.
    final Object resolver = manager.getClass().getMethod("shuffleBlockResolver").invoke(manager);
    return resolver.getClass().getName();
  }
}
