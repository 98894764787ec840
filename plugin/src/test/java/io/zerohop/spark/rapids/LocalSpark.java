package io.zerohop.spark.rapids;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Spark in this process, for the tests of one class. */
final class LocalSpark implements BeforeAllCallback, AfterAllCallback {
  private SparkContext context;

  @Override
  public void beforeAll(final ExtensionContext tests) {
    context =
        new SparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("exchanges")
                .set("spark.ui.enabled", "false"));
  }

  @Override
  public void afterAll(final ExtensionContext tests) {
    context.stop();
  }

  SparkContext context() {
    return context;
  }
}
