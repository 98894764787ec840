package io.zerohop.spark.compat;

import java.lang.reflect.Method;
import java.util.Arrays;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import scala.Tuple2;
import scala.collection.immutable.List;
import scala.collection.immutable.Nil$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Data of one partition that Spark computes on a chosen executor. The call that does so takes
 * Scala's {@code Seq}, which is another class in Scala 2.12 than in 2.13; a list is both.
 */
public final class PlacedData {
  private static final String MAKE = "makeRDD";

  private PlacedData() {}

  /**
   * One value. Spark waits {@code spark.locality.wait} for the executor and takes another one then.
   *
   * @param host of the executor
   * @param executorId whom to prefer
   */
  @SuppressWarnings("unchecked")
  public static <T> JavaRDD<T> on(
      final SparkContext context,
      final String host,
      final String executorId,
      final T value,
      final Class<T> type) {
    final List<?> places = list("executor_" + host + "_" + executorId);
    final ClassTag<T> tag = ClassTag$.MODULE$.apply(type);
    try {
      final Method make =
          Arrays.stream(SparkContext.class.getMethods())
              .filter(method -> method.getName().equals(MAKE) && method.getParameterCount() == 2)
              .findFirst()
              .orElseThrow(() -> new NoSuchMethodException(MAKE));
      final Object made = make.invoke(context, list(new Tuple2<>(value, places)), tag);
      return JavaRDD.fromRDD((RDD<T>) made, tag);
    } catch (final ReflectiveOperationException e) {
      throw SparkLinks.unsupported("SparkContext." + MAKE, e);
    }
  }

  private static <E> List<E> list(final E element) {
    @SuppressWarnings("unchecked") // Nothing is in it.
    final List<E> empty = (List<E>) Nil$.MODULE$;
    return empty.$colon$colon(element);
  }
}
