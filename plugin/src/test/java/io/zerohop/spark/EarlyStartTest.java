package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.List;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleHandle;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.Tuple2;
import scala.reflect.ClassTag$;

/** When an executor starts Zerohop: before a task asks for a writer, and not in a mere driver. */
@Timeout(60)
class EarlyStartTest {
  private static final long PATIENCE_MILLIS = 30_000;

  private JavaSparkContext context;

  @BeforeEach
  void begin() {
    context =
        new JavaSparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("early start")
                .set("spark.ui.enabled", "false")
                .set("spark.plugins", ZerohopPlugin.class.getName()));
  }

  @AfterEach
  void end() {
    context.close();
  }

  /** Its metrics are registered when it has started. */
  private static boolean hasStarted() {
    return !SparkEnv.get().metricsSystem().getSourcesByName("zerohop").isEmpty();
  }

  /** A thread makes what it starts. */
  private static boolean isStarting() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.getName().startsWith("zerohop-start"));
  }

  /** Spark opens a task's input before it asks for a writer. */
  private static int inputOpened() throws InterruptedException {
    for (long waited = 0; waited < PATIENCE_MILLIS && !hasStarted(); waited++) {
      Thread.sleep(1);
    }
    return hasStarted() ? 1 : 0;
  }

  private JavaPairRDD<Integer, Integer> shuffled() {
    return context
        .parallelize(List.of(1, 2, 3), 1)
        .<Integer, Integer>mapPartitionsToPair(
            numbers -> Collections.singletonList(new Tuple2<>(1, inputOpened())).iterator())
        .reduceByKey(Integer::sum, 1);
  }

  @Test
  void aTaskFindsItStartedWhileItsInputIsOpened() {
    assertThat(shuffled().collect()).containsExactly(new Tuple2<>(1, 1));
  }

  @Test
  void aHandleThatNoTaskReadsStartsNothing() {
    final ShuffleHandle handle =
        ((ShuffleDependency<?, ?, ?>) shuffled().rdd().dependencies().head()).shuffleHandle();
    final SerializerInstance serializer = SparkEnv.get().closureSerializer().newInstance();
    final ShuffleHandle copy =
        serializer.deserialize(
            serializer.serialize(handle, ClassTag$.MODULE$.<ShuffleHandle>apply(handle.getClass())),
            ClassTag$.MODULE$.<ShuffleHandle>apply(handle.getClass()));
    assertThat(copy).isInstanceOf(ZerohopShuffleHandle.class);
    assertThat(isStarting()).isFalse();
    assertThat(hasStarted()).isFalse();
  }
}
