package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A key of its own, with which Spark's connections use TLS. */
public final class TlsKeys {
  private static final String PASSWORD = "only-a-test";

  private TlsKeys() {}

  /**
   * Makes one, unless the folder has it.
   *
   * @return Spark's settings that use it
   */
  public static Map<String, String> settings(final Path folder) {
    final Path store = folder.resolve("keys.p12");
    if (!Files.exists(store)) {
      make(store);
    }
    return Map.of(
        "spark.ssl.rpc.enabled",
        "true",
        "spark.ssl.rpc.protocol",
        "TLSv1.3",
        "spark.ssl.rpc.keyStore",
        store.toString(),
        "spark.ssl.rpc.keyStorePassword",
        PASSWORD,
        "spark.ssl.rpc.keyPassword",
        PASSWORD,
        "spark.ssl.rpc.trustStore",
        store.toString(),
        "spark.ssl.rpc.trustStorePassword",
        PASSWORD);
  }

  private static void make(final Path store) {
    try {
      final Process keytool =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                  "-genkeypair",
                  "-keyalg",
                  "EC",
                  "-dname",
                  "CN=localhost",
                  "-storetype",
                  "PKCS12",
                  "-storepass",
                  PASSWORD,
                  "-keystore",
                  store.toString())
              .inheritIO()
              .start();
      assertThat(keytool.waitFor(30, TimeUnit.SECONDS)).isTrue();
      assertThat(keytool.exitValue()).isZero();
    } catch (final IOException | InterruptedException e) {
      throw new AssertionError("no keys were made", e);
    }
  }
}
