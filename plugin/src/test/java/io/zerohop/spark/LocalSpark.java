package io.zerohop.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Spark in this process, for the tests of one class. */
public final class LocalSpark implements BeforeAllCallback, AfterAllCallback {
  private SparkContext context;

  @Override
  public void beforeAll(final ExtensionContext tests) {
    context =
        new SparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("unit tests")
                .set("spark.ui.enabled", "false")
                // No test waits long for a server that is gone; Spark counts whole seconds.
                .set("spark.shuffle.io.retryWait", "1s"));
  }

  @Override
  public void afterAll(final ExtensionContext tests) {
    context.stop();
  }

  public SparkContext context() {
    return context;
  }
}
