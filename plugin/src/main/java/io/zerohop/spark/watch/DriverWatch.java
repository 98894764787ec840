package io.zerohop.spark.watch;

import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;

/**
 * Shows an application on its driver. The implementation is found by its class name, so that
 * shuffles do not depend on it.
 */
@FunctionalInterface
public interface DriverWatch {
  /**
   * Begins to show the application, until its SparkContext ends. Called once for a SparkContext.
   * Does not wait for executors.
   *
   * @throws RuntimeException if it cannot; shuffles are not affected. A {@link LinkageError} is
   *     possible too, on a Spark that lacks something.
   */
  void start(SparkContext context, SparkEnv env);
}
