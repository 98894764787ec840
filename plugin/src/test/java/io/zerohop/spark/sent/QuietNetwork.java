package io.zerohop.spark.sent;

import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import scala.Option;

/** Spark's network, which logs a stack at both ends for each connection that ends, says nothing. */
final class QuietNetwork implements BeforeAllCallback, AfterAllCallback {
  private static final String NETWORK = "org.apache.spark.network";

  @Override
  public void beforeAll(final ExtensionContext tests) {
    new SecurityManager(new SparkConf(false), Option.empty(), null); // Logs: that sets levels.
    Configurator.setLevel(NETWORK, Level.OFF);
  }

  @Override
  public void afterAll(final ExtensionContext tests) {
    Configurator.setLevel(NETWORK, Level.INFO);
  }
}
